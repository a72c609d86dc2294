package persons_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The properties that were read last stay known after a change, and no longer after a
// merge or an erasure.
func TestLastProperties(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		last := func(id, want string) {
			t.Helper()
			got := "unknown"
			if p, ok := s.LastProperties(1, id); ok {
				got = plain(t, p.Properties)
			}
			if got != want {
				t.Errorf("%s: last known %s, want %s", id, got, want)
			}
		}
		process(t, s, evs(`$set u1 {"$set":{"a":1}}`, `$set u2 {"$set":{"b":1}}`))
		last("u1", "unknown")
		properties(t, s, "u1")
		properties(t, s, "u2")
		last("u1", `{"a":1}`)
		process(t, s, evs(`$set u1 {"$set":{"a":2}}`))
		last("u1", `{"a":1}`)
		if got := properties(t, s, "u1"); got != `{"a":2}` {
			t.Errorf("after the change: %s", got)
		}
		last("u1", `{"a":2}`)
		process(t, s, evs(`$merge_dangerously u2 {"alias":"u1"}`))
		last("u1", "unknown")
		properties(t, s, "u2")
		p, ok, err := s.ByDistinctID(t.Context(), 1, "u2")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := s.Delete(t.Context(), 1, p.UUID, false); err != nil {
			t.Fatal(err)
		}
		last("u1", "unknown")
		last("u2", "unknown")
	})
}
