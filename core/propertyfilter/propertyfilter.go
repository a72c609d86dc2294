// Package propertyfilter reads the list of property filters in the query of a
// request, as lists of persons and of events take it, and tests properties against
// all filters of a list. core/match evaluates the single filter.
package propertyfilter

import (
	"slices"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// Item is a filter of a list with the kind of property that it reads.
type Item struct {
	Kind   string
	Filter *match.Filter
}

// Compile reads a JSON list of property filters, as it comes in the query
// of a request. Each filter names one of the kinds in its field type, or none,
// which is the first kind. An empty text is an empty list. Errors are Invalid
// faults of the field properties.
func Compile(raw string, opts match.Options, kinds ...string) ([]Item, error) {
	if raw == "" {
		return nil, nil
	}
	list, err := fastjson.Parse(raw)
	if err != nil || list.Type() != fastjson.TypeArray {
		return nil, fault.Field("properties", "invalid_input", "Not a JSON list of property filters.")
	}
	var out []Item
	for _, item := range list.GetArray() {
		kind := string(item.GetStringBytes("type"))
		if kind == "" {
			kind = kinds[0]
		}
		if !slices.Contains(kinds, kind) {
			return nil, fault.Fieldf("properties", "invalid_input", "Only %s properties can be asked for here, not %s.", strings.Join(kinds, " and "), kind)
		}
		f, err := match.CompileFilter(item.MarshalTo(nil), opts)
		if err != nil {
			if e := fault.From(err); e != nil {
				return nil, e.At("properties")
			}
			return nil, err
		}
		out = append(out, Item{kind, f})
	}
	return out, nil
}

// All tests the properties of one subject after another against filters that must
// all match. It reuses memory and is not safe for concurrent use.
type All struct {
	filters []*match.Filter
	env     match.Env
	parser  fastjson.Parser
	arena   []byte
}

// NewAll returns the conjunction of filters. None match everything that is JSON.
func NewAll(filters []*match.Filter, env match.Env) *All { return &All{filters: filters, env: env} }

// SetNow sets the reference of relative dates.
func (a *All) SetNow(t time.Time) { a.env.Now = t }

// Match reports whether properties, a JSON object, passes every filter. Unknown
// results do not pass.
func (a *All) Match(properties []byte) bool {
	v, err := a.parser.ParseBytes(properties)
	if err != nil {
		return false
	}
	for _, f := range a.filters {
		var value match.Value
		value, a.arena = match.FromJSON(v.Get(f.Property()), a.arena[:0])
		if f.Match(&value, &a.env) != match.True {
			return false
		}
	}
	return true
}
