package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// querySink is a sink whose answers to queries the event of the first step selects.
type querySink struct{ probe }

func (*querySink) DescribeQuery(context.Context) (sdk.QueryCapabilities, error) {
	return sdk.QueryCapabilities{Fields: []string{"event", "properties.*"}, Operators: []string{"exact"}, Freshness: -time.Hour, People: true}, nil
}

func (*querySink) CountAction(_ context.Context, q *sdk.ActionQuery, bucket time.Duration) (sdk.CountResult, error) {
	step := q.Steps[0]
	switch step.Event {
	case "fails":
		return sdk.CountResult{}, sdk.Transient(errors.New("the table is locked"))
	case "panics":
		panic("no luck")
	case "cannot":
		return sdk.CountResult{Matched: 7, Unsupported: step.AllOf}, nil
	}
	return sdk.CountResult{Matched: 3, Buckets: []sdk.QueryBucket{{Start: q.From.Truncate(bucket), Count: 3}}, AsOfSeq: 9}, nil
}

func (*querySink) PeopleOfAction(_ context.Context, q *sdk.ActionQuery, limit int, cursor []byte, page func(sdk.PeoplePage) error) error {
	n := limit
	if q.Steps[0].Event == "too many" {
		n++
	}
	for i := range n {
		who := sdk.QueryPerson{DistinctID: fmt.Sprintf("%s-%d", cursor, i), Count: 1, FirstSeen: q.From, LastSeen: q.To}
		if err := page(sdk.PeoplePage{People: []sdk.QueryPerson{who}, Cursor: fmt.Append(nil, i), AsOfSeq: 9}); err != nil {
			return err
		}
	}
	return nil
}

func TestSinkQueries(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "querier", nil), instance("mute", "probe", nil)))
	s, mute := r.sink(t), r.Sinks()[1]
	ready(t, r, mute)
	c, err := s.DescribeQuery(t.Context())
	if err != nil || !s.Queries() || len(c.Fields) != 2 || !c.People || c.Freshness != 0 {
		t.Errorf("%+v %v", c, err)
	}
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := func(event string) *sdk.ActionQuery {
		return &sdk.ActionQuery{ProjectID: 1, From: from, To: from.Add(time.Hour), Steps: []sdk.QueryStep{{
			Event: event, AllOf: []sdk.Predicate{{Field: "moon", Operator: "exact", Value: json.RawMessage(`"full"`)}},
		}}}
	}
	count, err := s.CountAction(t.Context(), about("e"), time.Hour)
	if err != nil || count.Matched != 3 || count.AsOfSeq != 9 || !count.Buckets[0].Start.Equal(from.Truncate(time.Hour)) {
		t.Errorf("%+v %v", count, err)
	}
	count, err = s.CountAction(t.Context(), about("cannot"), 0)
	if err != nil || count.Matched != 0 || len(count.Unsupported) != 1 || string(count.Unsupported[0].Value) != `"full"` {
		t.Errorf("%+v %v", count, err)
	}
	for event, class := range map[string]sdk.Class{"fails": sdk.ClassTransient, "panics": sdk.ClassInternal} {
		if _, err := s.CountAction(t.Context(), about(event), 0); sdk.AsError(err) == nil || sdk.AsError(err).Class != class {
			t.Errorf("%s: %v", event, err)
		}
	}
	page, err := s.PeopleOfAction(t.Context(), about("e"), 3, []byte("c"))
	if err != nil || len(page.People) != 3 || page.People[2].DistinctID != "c-2" || string(page.Cursor) != "2" || !page.People[0].FirstSeen.Equal(from) {
		t.Errorf("%+v %v", page, err)
	}
	if _, err := s.PeopleOfAction(t.Context(), about("too many"), 3, nil); sdk.AsError(err) == nil || sdk.AsError(err).Code != "contract_breach" {
		t.Errorf("%v", err)
	}
	if _, err := mute.CountAction(t.Context(), about("e"), 0); mute.Queries() || sdk.AsError(err).Class != sdk.ClassUnsupported {
		t.Errorf("%v", err)
	}
}
