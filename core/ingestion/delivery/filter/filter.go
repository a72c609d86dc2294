// Package filter selects the events of a sink and redacts them, as the sink's
// delivery section configures.
//
// A filter is immutable. Without operators of matcher plugins it is pure, too: the same
// event has the same result in every process and release, so that an event that is read
// again is sent as before. Operators of plugins are evaluated in two passes: Collect
// passes the pairs of all events to match.External, the caller asks the plugins, and
// Apply uses the results.
package filter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

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
	names           []string // of the properties that the filters read
	inputs          [][]int  // by filter: indexes into names
	external        bool     // a filter has an operator of a plugin
	sampleThreshold uint64   // distinct ids with a smaller hash are sent
	redact          *redactor
}

// Reasons why an event is not sent to a sink, as label values of the metric.
const (
	skipName     = "event"
	skipProject  = "project"
	skipProperty = "property"
	skipSample   = "sample"
)

// New compiles the filters of a delivery section. It fails if a property filter or a
// path to redact is invalid. registry has the operators of plugins; nil accepts every
// name of one, for a check without plugins: the filters then match nothing.
func New(c settings.Delivery, registry match.Registry) (*Filter, error) {
	redact, err := newRedactor(c.Redact)
	if err != nil {
		return nil, err
	}
	f := &Filter{events: c.Events, projects: c.Projects, sampleThreshold: math.MaxUint64, redact: redact}
	if c.Sample > 0 && c.Sample < 1 {
		f.sampleThreshold = uint64(c.Sample * (1 << 63) * 2)
	}
	if registry == nil {
		registry = unchecked{}
	}
	for i, property := range c.Properties {
		p, err := compileProperty(property, registry)
		if err != nil {
			return nil, fmt.Errorf("delivery.properties[%d]: %w", i, err)
		}
		f.addProperty(p)
	}
	return f, nil
}

// unchecked has every operator, and no plugin that evaluates it.
type unchecked struct{}

func (unchecked) Operator(string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Compile: func([]byte) (match.Compiled, error) { return match.Compiled{Open: true}, nil }}, true
}

// compileProperty compiles a filter on a property of the event. Sinks read the
// journal, which has no persons and groups.
func compileProperty(property map[string]any, registry match.Registry) (*match.Filter, error) {
	if kind, ok := property["type"].(string); ok && kind != "" && kind != "event" {
		return nil, fmt.Errorf("only properties of events can be told apart here, not those of type %q", kind)
	}
	raw, err := json.Marshal(property)
	if err != nil {
		return nil, err
	}
	return match.CompileFilter(raw, match.Options{Registry: registry})
}

func (f *Filter) addProperty(p *match.Filter) {
	f.properties = append(f.properties, p)
	f.external = f.external || p.External()
	reads := p.Reads()
	if len(reads) == 0 {
		reads = []string{p.Property()}
	}
	input := make([]int, len(reads))
	for i, name := range reads {
		if input[i] = slices.Index(f.names, name); input[i] < 0 {
			input[i] = len(f.names)
			f.names = append(f.names, name)
		}
	}
	f.inputs = append(f.inputs, input)
}

// External reports whether a property filter has an operator of a plugin.
func (f *Filter) External() bool { return f.external }

// Open returns the operator of a filter whose value its plugin has not checked yet, or "".
// Such a filter matches nothing.
func (f *Filter) Open() string {
	for _, p := range f.properties {
		if p.Open() {
			return p.Operator()
		}
	}
	return ""
}

// Collect evaluates the property filters of the events that the other filters select, so
// that env.External sees every pair.
func (f *Filter) Collect(events []sdk.Event, env *match.Env) {
	for i := range events {
		if f.rejectCheap(&events[i]) == "" {
			f.matchesProperties(&events[i], env)
		}
	}
}

// Apply filters and redacts events in place and returns those to send. It calls
// skip with the index and the reason for each of the others, in order. The ids of the
// events stay; see WithRedactedIDs.
func (f *Filter) Apply(events []sdk.Event, env *match.Env, skip func(i int, reason string)) []sdk.Event {
	kept := events[:0]
	for i := range events {
		if reason := f.rejectReason(&events[i], env); reason != "" {
			skip(i, reason)
			continue
		}
		kept = append(kept, events[i])
		if f.redact != nil {
			ev := &kept[len(kept)-1]
			ev.Properties = f.redact.redact(ev)
		}
	}
	clear(events[len(kept):])
	return kept
}

// Redacted returns the event with its properties redacted.
func (f *Filter) Redacted(ev sdk.Event) sdk.Event {
	if f.redact != nil {
		ev.Properties = f.redact.redact(&ev)
	}
	return ev
}

// RedactsIDs reports whether the section names the id of an event or its distinct id.
func (f *Filter) RedactsIDs() bool { return f.redact != nil && f.redact.redactsIDs() }

// WithRedactedIDs returns the event as the sink sees it. The server keeps the ids
// otherwise: the order of events, erasures and dead letters depend on them.
func (f *Filter) WithRedactedIDs(ev sdk.Event) sdk.Event {
	if f.redact == nil {
		return ev
	}
	return f.redact.ids(ev)
}

// rejectReason returns why an event is not sent, or "".
func (f *Filter) rejectReason(ev *sdk.Event, env *match.Env) string {
	if reason := f.rejectCheap(ev); reason != "" {
		return reason
	}
	if !f.matchesProperties(ev, env) {
		return skipProperty
	}
	return ""
}

// rejectCheap is rejectReason without the property filters.
func (f *Filter) rejectCheap(ev *sdk.Event) string {
	switch {
	case !included(f.projects.Include, f.projects.Exclude, func(id int64) bool { return id == ev.ProjectID }):
		return skipProject
	case !included(f.events.Include, f.events.Exclude, func(pattern string) bool { return globMatch(pattern, ev.Name) }):
		return skipName
	case f.sampleThreshold != math.MaxUint64 && HashText(ev.DistinctID) >= f.sampleThreshold:
		return skipSample
	}
	return ""
}

func included[T any](include, exclude []T, is func(T) bool) bool {
	return (len(include) == 0 || slices.ContainsFunc(include, is)) && !slices.ContainsFunc(exclude, is)
}

// matchesProperties reports whether the event matches every property filter. A
// filter whose result is unknown does not match.
func (f *Filter) matchesProperties(ev *sdk.Event, env *match.Env) bool {
	if len(f.properties) == 0 {
		return true
	}
	values := make([][]byte, len(f.names)) // nil where the event has none
	eachMember(ev.Properties, func(name jsontext.String, value []byte) {
		var buf [64]byte
		key := name.Resolve(buf[:0])
		for i, name := range f.names {
			if name == string(key) {
				values[i] = value // as everywhere, the last of a name counts
			}
		}
	})
	matches := true
	for i, p := range f.properties {
		v, err := f.input(i, values)
		if err != nil {
			return false
		}
		switch p.Match(&v, env) {
		case match.False:
			return false
		case match.Unknown: // the pairs of the other filters are collected, too
			matches = false
		case match.True:
		}
	}
	return matches
}

// input returns the value that the filter i reads: a property, or the object of those
// that an operator of a plugin reads.
func (f *Filter) input(i int, values [][]byte) (v match.Value, err error) {
	reads := f.properties[i].Reads()
	if len(reads) == 0 {
		if raw := values[f.inputs[i][0]]; raw != nil {
			return match.Parse(raw)
		}
		return v, nil // missing
	}
	var object []byte
	for k, name := range reads {
		raw := values[f.inputs[i][k]]
		if raw == nil {
			continue
		}
		if v, err = match.Parse(raw); err != nil {
			return v, err
		}
		object = match.AppendProperty(object, 0, name, &v)
	}
	v, _ = match.CloseObject(object, 0)
	return v, nil
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
