package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// Pages of any size have each event once, in order, also of equal timestamps, and
// events that are stored meanwhile are not among them.
func TestPagesHaveEachEventOnce(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
		begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		store := func(projectID int64, name string, minute int) {
			t.Helper()
			ev := &sdk.Event{
				UUID: uuid.Must(uuid.NewV7()).String(), ProjectID: projectID, Name: name, DistinctID: "u", Timestamp: begin.Add(time.Duration(minute) * time.Minute),
				ReceivedAt: begin, Properties: json.RawMessage(fmt.Sprintf(`{"n":%d}`, minute)), ElementsChain: "a:b",
			}
			if _, err := e.Store(t.Context(), []*sdk.Event{ev}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 60 {
			store(int64(1+i%2), []string{"a", "b", "c"}[i%3], 100-i/7)
		}
		through, err := e.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 7, 1000} {
			for _, name := range []string{"", "a"} {
				q := events.ExportQuery{Through: through, Event: name}
				var all []eventLine
				for {
					p, next, err := eventPage(t.Context(), e, 1, q, limit)
					if err != nil {
						t.Fatal(err)
					}
					for line := range bytes.Lines(p.lines.Bytes()) {
						var l eventLine
						if err := json.Unmarshal(line, &l); err != nil {
							t.Fatal(err)
						}
						all = append(all, l)
					}
					store(1, "a", 105)
					if next == "" {
						break
					}
					if q.After, err = events.ParseCursor(next); err != nil {
						t.Fatal(err)
					}
				}
				want := map[string]int{"": 30, "a": 10}[name]
				seen := map[string]bool{}
				for i, l := range all {
					seen[l.UUID] = true
					if i > 0 && l.Timestamp < all[i-1].Timestamp {
						t.Errorf("%s comes after %s", l.Timestamp, all[i-1].Timestamp)
					}
				}
				if len(all) != want || len(seen) != want {
					t.Errorf("limit %d, name %q: %d events, %d different ones, want %d", limit, name, len(all), len(seen), want)
				}
				if want := `{"$elements_chain":"a:b","n":`; !bytes.HasPrefix(all[0].Properties, []byte(want)) {
					t.Errorf("properties %s", all[0].Properties)
				}
			}
		}
	})
}
