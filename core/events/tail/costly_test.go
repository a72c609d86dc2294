package tail

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

func filterOf(t *testing.T, raw string) *filter {
	t.Helper()
	items, err := propertyfilter.Compile(raw, match.Options{Location: time.UTC}, events.EventProperty, events.PersonProperty)
	if err != nil {
		t.Fatal(err)
	}
	return newFilter(&events.Filter{Properties: items})
}

// slowPattern needs about 30 s for a text of 1 MB.
const slowPattern = `[{"key":"p","operator":"regex","value":"(?:a?){900}(?:a|b|ab){90}c|cheap"}]`

// A filter that is too costly for an event is not applied to it; the event is counted, and
// cheaper ones behind it match.
func TestCostlyEventsAreSkipped(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return fmt.Sprintf(`{"p":%q}`, strings.Repeat("ab", n/2)) }
	list := []message{}
	for _, properties := range []string{text(1 << 20), text(60 << 10), `{"p":"cheap"}`, text(60 << 10), `{}`, `{"p":"cheap"}`} {
		list = append(list, message{record: &events.Record{Properties: properties}, id: int64(len(list) + 1)})
	}
	v := &viewer{filter: filterOf(t, slowPattern), filled: make(chan struct{}, 1)}
	for range 2 { // each look has a budget of its own
		got := v.matching(t.Context(), list)
		if len(got) != 2 || got[0].id != 3 || got[1].id != 6 || v.skipped != [reasons]int64{costly: 3} {
			t.Fatalf("%d match, skipped %v", len(got), v.skipped)
		}
		if said := string(v.next(nil)); !strings.Contains(said, `{"count":3,"reason":"costly"}`) {
			t.Errorf("the stream says %q", said)
		}
	}
}

// The budget is that of one look: many events that are each cheap enough spend it.
func TestBudgetOfAllEvents(t *testing.T) {
	t.Parallel()
	list := make([]message, 1000)
	r := &events.Record{Properties: fmt.Sprintf(`{"p":%q}`, strings.Repeat("x", 60<<10))}
	for i := range list {
		list[i] = message{record: r, id: int64(i + 1)}
	}
	v := &viewer{filter: filterOf(t, `[{"key":"p","operator":"regex","value":"^x+$"}]`), filled: make(chan struct{}, 1)}
	got := len(v.matching(t.Context(), list))
	if got == 0 || got > 200 || v.skipped[costly] != int64(len(list)-got) {
		t.Errorf("%d of %d match, skipped %v", got, len(list), v.skipped)
	}
}

// A stop of the server waits for one event, not for all.
func TestMatchingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := []message{{record: &events.Record{Properties: "{}"}, id: 1}, {record: &events.Record{Properties: "{}"}, id: 2}}
	v := &viewer{filter: newFilter(&events.Filter{}), filled: make(chan struct{}, 1)}
	if got := v.matching(ctx, list); len(got) != 0 || v.skipped[costly] != 2 {
		t.Errorf("%d match, skipped %v", len(got), v.skipped)
	}
}
