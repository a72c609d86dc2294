// Package filter selects the events of a sink and redacts them, as the sink's
// delivery section configures.
//
// A filter is pure and immutable: the same event has the same result in every
// process and release, so that an event that is read again is sent as before.
package filter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// Filter selects the events of a sink and redacts them. It is immutable.
type Filter struct {
	events          settings.EventFilter
	projects        settings.ProjectFilter
	properties      []*match.Filter
	sampleThreshold uint64 // distinct ids with a smaller hash are sent
	redact          *redactor
}

// Reasons why an event is not sent to a sink, as label values of the metric.
const (
	skipName     = "event"
	skipProject  = "project"
	skipProperty = "property"
	skipSample   = "sample"
)

// New compiles the filters of a delivery section. It fails if a property filter is
// invalid.
func New(c settings.Delivery) (*Filter, error) {
	f := &Filter{events: c.Events, projects: c.Projects, sampleThreshold: math.MaxUint64, redact: newRedactor(c.Redact)}
	if c.Sample > 0 && c.Sample < 1 {
		f.sampleThreshold = uint64(c.Sample * (1 << 63) * 2)
	}
	for i, property := range c.Properties {
		p, err := compileProperty(property)
		if err != nil {
			return nil, fmt.Errorf("delivery.properties[%d]: %w", i, err)
		}
		f.properties = append(f.properties, p)
	}
	return f, nil
}

// compileProperty compiles a filter on a property of the event. Sinks read the
// journal, which has no persons and groups.
func compileProperty(property map[string]any) (*match.Filter, error) {
	if kind, ok := property["type"].(string); ok && kind != "" && kind != "event" {
		return nil, fmt.Errorf("only properties of events can be told apart here, not those of type %q", kind)
	}
	raw, err := json.Marshal(property)
	if err != nil {
		return nil, err
	}
	return match.CompileFilter(raw, match.Options{})
}

// Apply filters and redacts events in place and returns those to send. It calls
// skip with the index and the reason for each of the others, in order.
func (f *Filter) Apply(events []sdk.Event, now time.Time, skip func(i int, reason string)) []sdk.Event {
	kept := events[:0]
	for i := range events {
		if reason := f.rejectReason(&events[i], now); reason != "" {
			skip(i, reason)
			continue
		}
		kept = append(kept, events[i])
		if f.redact != nil {
			ev := &kept[len(kept)-1]
			ev.Properties = f.redact.redact(ev.Properties)
		}
	}
	clear(events[len(kept):])
	return kept
}

// rejectReason returns why an event is not sent, or "".
func (f *Filter) rejectReason(ev *sdk.Event, now time.Time) string {
	switch {
	case !included(f.projects.Include, f.projects.Exclude, func(id int64) bool { return id == ev.ProjectID }):
		return skipProject
	case !included(f.events.Include, f.events.Exclude, func(pattern string) bool { return globMatch(pattern, ev.Name) }):
		return skipName
	case f.sampleThreshold != math.MaxUint64 && HashText(ev.DistinctID) >= f.sampleThreshold:
		return skipSample
	case !f.matchesProperties(ev, now):
		return skipProperty
	}
	return ""
}

func included[T any](include, exclude []T, is func(T) bool) bool {
	return (len(include) == 0 || slices.ContainsFunc(include, is)) && !slices.ContainsFunc(exclude, is)
}

// matchesProperties reports whether the event matches every property filter. A
// filter whose result is unknown does not match.
func (f *Filter) matchesProperties(ev *sdk.Event, now time.Time) bool {
	if len(f.properties) == 0 {
		return true
	}
	values := make([][]byte, len(f.properties)) // nil where the event has none
	eachMember(ev.Properties, func(name jsontext.String, value []byte) {
		var buf [64]byte
		key := name.Resolve(buf[:0])
		for i, p := range f.properties {
			if p.Property() == string(key) {
				values[i] = value // as everywhere, the last of a name counts
			}
		}
	})
	env := match.Env{Now: now}
	for i, p := range f.properties {
		var v match.Value // missing
		if values[i] != nil {
			var err error
			if v, err = match.Parse(values[i]); err != nil {
				return false
			}
		}
		if p.Match(&v, &env) != match.True {
			return false
		}
	}
	return true
}

// eachMember calls do for each member of a JSON object.
func eachMember(object []byte, do func(name jsontext.String, value []byte)) {
	var s jsontext.Scanner
	s.Reset(object)
	if s.Peek() != '{' {
		return
	}
	s.Open()
	for first := true; ; first = false {
		name, ok := s.Member(first)
		if !ok {
			return
		}
		value := s.Value()
		if s.Bad {
			return
		}
		do(name, value)
	}
}

// globMatch reports whether s matches pattern, where * matches any characters and
// ? one.
func globMatch(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, back := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, back = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			back++
			i, j = star+1, back
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// HashText returns a uniform hash of a text: FNV-1a with a final mix. It is the
// same in every process and release, because it decides the members of a sample.
func HashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
