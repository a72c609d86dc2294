package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
)

// Question says which events are counted, and how.
type Question struct {
	ProjectID int64
	Event     string
	Property  string // only events whose property has the text Value; empty: all
	Value     string
	Breakdown string // property whose texts are told apart; empty tells none
	From, To  time.Time
	Interval  time.Duration // the first begins at From
}

// Count is how many events there were in one interval with one value of the
// breakdown, and by how many people.
type Count struct {
	Start  time.Time
	Value  string // "" for events without the property
	Events int64
	People int64
}

// Counts counts events from one time up to, but not at, another, for each
// interval and value of the breakdown that has any, ascending. People are
// persons as they are now. Questions about a flag are answered from an index;
// others read the properties of every event of that name and time.
func (s *Service) Counts(ctx context.Context, q Question) ([]Count, error) {
	if q.Interval < time.Second {
		return nil, fault.Field("interval", "invalid_input", "An interval has at least one second.")
	}
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	ask := s.countRead
	if q.indexed() {
		ask = s.countByFlag
	}
	counts, err := ask(ctx, &q)
	if err != nil {
		return nil, fmt.Errorf("count events %q: %w", q.Event, err)
	}
	return counts, nil
}

// indexed tells whether columns know all that is asked.
func (q *Question) indexed() bool {
	return q.Property != "" && q.Property == flagProperty(q.Event) && len(q.Value) < flagKeyMax &&
		(q.Breakdown == "" || q.Breakdown == responseProperty)
}

// tally counts events one by one.
type tally struct {
	q      *Question
	parser fastjson.Parser
	cells  map[cell]*heads
}

// cell is an interval and a value.
type cell struct {
	interval int64
	value    string
}

// heads are the events of a cell and whose they are.
type heads struct {
	events int64
	people map[string]bool
}

func (t *tally) add(at int64, who string, properties []byte) {
	c := cell{interval: (at - t.q.From.UnixMicro()) / t.q.Interval.Microseconds()}
	if t.q.Property != "" || t.q.Breakdown != "" {
		v, err := t.parser.ParseBytes(properties)
		if err != nil {
			return
		}
		if t.q.Property != "" && textOf(v, t.q.Property) != t.q.Value {
			return
		}
		if t.q.Breakdown != "" {
			c.value = textOf(v, t.q.Breakdown)
		}
	}
	h := t.cells[c]
	if h == nil {
		h = &heads{people: map[string]bool{}}
		t.cells[c] = h
	}
	h.events++
	h.people[who] = true
}

// textOf is the text form of a property, "" when there is none.
func textOf(v *fastjson.Value, name string) string {
	if p := v.Get(name); p != nil {
		return scalar(p)
	}
	return ""
}

func (t *tally) counts() []Count {
	out := make([]Count, 0, len(t.cells))
	for c, h := range t.cells {
		out = append(out, Count{Start: t.q.start(c.interval), Value: c.value, Events: h.events, People: int64(len(h.people))})
	}
	sortCounts(out)
	return out
}

// sortCounts sorts by byte order, whatever order a database has for texts.
func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int {
		if d := a.Start.Compare(b.Start); d != 0 {
			return d
		}
		return strings.Compare(a.Value, b.Value)
	})
}

// start is when an interval begins.
func (q *Question) start(interval int64) time.Time {
	return q.From.Add(time.Duration(interval) * q.Interval)
}
