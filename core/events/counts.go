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

// CountQuery selects the events to count and how to group them.
type CountQuery struct {
	ProjectID int64
	Event     string
	Property  string // only events whose property has the text Value; empty: all
	Value     string
	Breakdown string // property whose texts are counted apart; empty: none
	From, To  time.Time
	Interval  time.Duration // the first interval begins at From
}

// Count is the number of events in one interval with one value of the breakdown,
// and the number of persons who caused them.
type Count struct {
	Start  time.Time
	Value  string // "" for events without the property
	Events int64
	People int64
}

// Counts counts events with a timestamp in [From, To), for each interval and
// value of the breakdown that has any, ascending. Persons are counted as they
// are now. Queries about a flag are answered from an index; others read the
// properties of every event of that name and time.
func (s *Service) Counts(ctx context.Context, q CountQuery) ([]Count, error) {
	if q.Interval < time.Second {
		return nil, fault.Field("interval", "invalid_input", "An interval has at least one second.")
	}
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	var counts []Count
	err := s.db.RunScan(ctx, q.ProjectID, func(ctx context.Context) (err error) {
		counts, err = s.backend.Counts(ctx, &q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count events %q: %w", q.Event, err)
	}
	return counts, nil
}

// Indexed reports whether columns hold everything that q filters and groups by.
func (q *CountQuery) Indexed() bool {
	return q.Property != "" && q.Property == flagProperty(q.Event) && len(q.Value) < flagKeyMax &&
		(q.Breakdown == "" || q.Breakdown == responseProperty)
}

// Counter counts events one by one.
type Counter struct {
	q       *CountQuery
	parser  fastjson.Parser
	buckets map[bucketKey]*bucket
}

// bucketKey is an interval and a value of the breakdown.
type bucketKey struct {
	interval int64
	value    string
}

// bucket is the number of events and the persons who caused them.
type bucket struct {
	events  int64
	persons map[string]bool
}

// NewCounter returns a Counter for q.
func NewCounter(q *CountQuery) *Counter { return &Counter{q: q, buckets: map[bucketKey]*bucket{}} }

// Add counts an event at a time in unix microseconds, if its properties fit. person is one
// text per person.
func (c *Counter) Add(at int64, person string, properties []byte) {
	key := bucketKey{interval: (at - c.q.From.UnixMicro()) / c.q.Interval.Microseconds()}
	if c.q.Property != "" || c.q.Breakdown != "" {
		v, err := c.parser.ParseBytes(properties)
		if err != nil {
			return
		}
		if c.q.Property != "" && propertyText(v, c.q.Property) != c.q.Value {
			return
		}
		if c.q.Breakdown != "" {
			key.value = propertyText(v, c.q.Breakdown)
		}
	}
	c.count(key, person, 1)
}

// AddMany counts n events of a person in an interval, with a value of the breakdown.
func (c *Counter) AddMany(interval int64, value, person string, n int64) {
	c.count(bucketKey{interval, value}, person, n)
}

func (c *Counter) count(key bucketKey, person string, n int64) {
	b := c.buckets[key]
	if b == nil {
		b = &bucket{persons: map[string]bool{}}
		c.buckets[key] = b
	}
	b.events += n
	b.persons[person] = true
}

// propertyText is the text form of a property, "" if the event does not have it.
func propertyText(v *fastjson.Value, name string) string {
	if p := v.Get(name); p != nil {
		return scalarText(p)
	}
	return ""
}

// Counts returns what was counted, in order.
func (c *Counter) Counts() []Count {
	out := make([]Count, 0, len(c.buckets))
	for key, b := range c.buckets {
		out = append(out, Count{Start: c.q.start(key.interval), Value: key.value, Events: b.events, People: int64(len(b.persons))})
	}
	sortCounts(out)
	return out
}

// sortCounts sorts by interval and then by byte order, which does not depend on
// the collation of the database.
func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int {
		if d := a.Start.Compare(b.Start); d != 0 {
			return d
		}
		return strings.Compare(a.Value, b.Value)
	})
}

// start is the start of an interval.
func (q *CountQuery) start(interval int64) time.Time {
	return q.From.Add(time.Duration(interval) * q.Interval)
}
