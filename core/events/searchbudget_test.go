package events_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/sdk"
)

// A page ends when its filters have spent their work, and the next one goes on there. An event
// that takes all of it is an error.
func TestSearchHasABudget(t *testing.T) {
	t.Parallel()
	s := service(t, dbtest.SQLite(t))
	items, err := propertyfilter.Compile(`[{"key":"p","operator":"regex","value":"^x+$"}]`, match.Options{}, events.EventProperty)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*sdk.Event, 300)
	for i := range all {
		all[i] = ev(i+1, "a", "u", fmt.Sprintf(`{"p":%q}`, strings.Repeat("x", 60<<10)))
	}
	store(t, s, all...)
	f := events.Filter{Properties: items}
	got, next, err := s.Records(t.Context(), 1, f, 1000)
	if err != nil || len(got) == 0 || len(got) == len(all) || next == (events.Cursor{}) {
		t.Fatalf("%d of %d events, next %v, %v", len(got), len(all), next, err)
	}
	if n := len(walk(t, s, f, 1000)); n != len(all) {
		t.Errorf("all pages have %d of %d events", n, len(all))
	}
	store(t, s, ev(1000, "long", "u", fmt.Sprintf(`{"p":%q}`, strings.Repeat("x", 100<<10))))
	f.Event = "long"
	if _, _, err := s.Records(t.Context(), 1, f, 1000); fault.CodeOf(err) != "filter_too_expensive" {
		t.Errorf("a text that is too long: %v", err)
	}
}
