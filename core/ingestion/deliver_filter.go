package ingestion

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// rules decide which events a sink gets, and what of them. They do not change.
type rules struct {
	events   EventFilter
	projects ProjectFilter
	filters  []*match.Filter
	below    uint64 // the hashes of distinct ids that are sent
	redact   *redactor
}

// Why an event is not sent to a sink, as the metric says it.
const (
	skipName     = "event"
	skipProject  = "project"
	skipProperty = "property"
	skipSample   = "sample"
)

// newRules compiles what an operator wants.
func newRules(c SinkConfig) (*rules, error) {
	r := &rules{events: c.Events, projects: c.Projects, below: math.MaxUint64, redact: newRedactor(c.Redact)}
	if c.Sample > 0 && c.Sample < 1 {
		r.below = uint64(c.Sample * (1 << 63) * 2)
	}
	for i, raw := range c.Properties {
		f, err := compileProperty(raw)
		if err != nil {
			return nil, fmt.Errorf("delivery.properties[%d]: %w", i, err)
		}
		r.filters = append(r.filters, f)
	}
	return r, nil
}

// compileProperty compiles a filter on a property of the event; sinks read the
// journal, where nothing is known of people and groups.
func compileProperty(raw json.RawMessage) (*match.Filter, error) {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &of) == nil && of.Type != "" && of.Type != "event" {
		return nil, fmt.Errorf("only properties of events can be told apart here, not those of type %q", of.Type)
	}
	return match.CompileFilter(raw, match.Options{})
}

// keep leaves in events, in place, those that are to be sent, as they are to be
// sent, and tells skip why the others are not.
func (r *rules) keep(events []sdk.Event, now time.Time, skip func(why string)) []sdk.Event {
	kept := events[:0]
	for i := range events {
		if why := r.against(&events[i], now); why != "" {
			skip(why)
			continue
		}
		kept = append(kept, events[i])
		if r.redact != nil {
			ev := &kept[len(kept)-1]
			ev.Properties = r.redact.clean(ev.Properties)
		}
	}
	clear(events[len(kept):])
	return kept
}

// against says what speaks against sending an event, or nothing.
func (r *rules) against(ev *sdk.Event, now time.Time) string {
	switch {
	case !chosen(r.projects.Include, r.projects.Exclude, func(id int64) bool { return id == ev.ProjectID }):
		return skipProject
	case !chosen(r.events.Include, r.events.Exclude, func(pattern string) bool { return like(pattern, ev.Name) }):
		return skipName
	case r.below != math.MaxUint64 && hashText(ev.DistinctID) >= r.below:
		return skipSample
	case !r.pass(ev, now):
		return skipProperty
	}
	return ""
}

func chosen[T any](include, exclude []T, is func(T) bool) bool {
	return (len(include) == 0 || slices.ContainsFunc(include, is)) && !slices.ContainsFunc(exclude, is)
}

// pass reports whether the event passes every property filter for certain.
func (r *rules) pass(ev *sdk.Event, now time.Time) bool {
	if len(r.filters) == 0 {
		return true
	}
	values := make([][]byte, len(r.filters)) // nil where the event has none
	eachMember(ev.Properties, func(name event.Text, value []byte) {
		var buf [64]byte
		key := name.PlainName(buf[:0])
		for i, f := range r.filters {
			if f.Property() == string(key) {
				values[i] = value // as everywhere, the last of a name counts
			}
		}
	})
	env := match.Env{Now: now}
	for i, f := range r.filters {
		var v match.Value // missing
		if values[i] != nil {
			var err error
			if v, err = match.Parse(values[i]); err != nil {
				return false
			}
		}
		if f.Match(&v, &env) != match.True {
			return false
		}
	}
	return true
}

// eachMember walks over the members of a JSON object.
func eachMember(object []byte, do func(name event.Text, value []byte)) {
	var s event.Scanner
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

// like reports whether s is of the form of pattern, where * stands for any
// characters and ? for one.
func like(pattern, s string) bool {
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

// hashText spreads texts evenly over all numbers, the same in every process
// and release: it decides who is in a sample. It is FNV-1a, mixed once more.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
