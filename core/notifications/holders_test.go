package notifications

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// Each process asks for the holders each second: the notifications that wait without a
// lease are not read.
func TestHoldersAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	now := time.Now()
	insert := `INSERT INTO notifications (project_id, action_id, notifier, destination, key, event_uuid, text, message, suppressed, state, attempts,
			next_at, leased_until, created_at, expires_at, message_id, error_code, error, leased_by)
		SELECT 1, 1, 'team', 'room', 'key' || i, '', '', '{}', 0, 'waiting', 0, 0, CASE WHEN i = 1 THEN ?::bigint ELSE 0 END, 0, 0, '', '', '', 'node' || i
		FROM generate_series(1, 3000) i`
	if _, err := d.Write(t.Context()).NewRaw(insert, now.Add(time.Minute).UnixMicro()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(t.Context()).NewRaw("ANALYZE notifications").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &store{d}
	if got, err := s.holders(t.Context(), now); err != nil || len(got) != 1 || got[0] != "node1" {
		t.Errorf("the holders are %v: %v", got, err)
	}
	var plan []string
	if err := d.Read(t.Context()).NewRaw("EXPLAIN "+selectHolders, now.UnixMicro(), now.UnixMicro()).Scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "notifications_leased") {
		t.Errorf("the plan reads all that wait:\n%s", text)
	}
}
