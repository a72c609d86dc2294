// Package propertyvalues lists the most frequent values of a property, for the
// autocompletion of conditions.
//
// It stores nothing: it reads the newest persons or events of a project, at most maxSample of
// them and for at most sampleTime, and counts the values of the property in them. Ingestion
// does no work for it. Values that occur only in older rows are missing.
package propertyvalues

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/jsontext"
)

const (
	maxValues   = 20    // of an answer
	maxDistinct = 5_000 // values that are counted; later ones are left out
	maxText     = 300   // bytes of a value; longer ones are left out
	maxElements = 100   // of a list that are counted
)

// Value is a value of a property and how many of the sample have it. Name is a JSON text,
// number or boolean.
type Value struct {
	Name  json.RawMessage `json:"name"`
	Count int             `json:"count"`
}

// counter counts the values of a property whose text contains part, in lower case.
type counter struct {
	key, part string
	counts    map[string]int // by the JSON of the value
}

func newCounter(key, part string) *counter {
	return &counter{key: key, part: strings.ToLower(part), counts: map[string]int{}}
}

// add counts the values of an object: the value of the property, or each element if that is
// a list. Objects, null and what is in lists of lists have no text to compare with.
func (c *counter) add(object []byte) {
	members, ok := jsontext.OpenObject(jsontext.View(object))
	for ok && members.Next() {
		if members.Key != c.key {
			continue
		}
		if !strings.HasPrefix(members.Value, "[") {
			c.count(members.Value)
			continue
		}
		list, _ := jsontext.OpenArray(members.Value)
		for n := 0; n < maxElements && list.Element(); n++ {
			c.count(list.Value)
		}
	}
}

func (c *counter) count(raw string) {
	if raw == "" || raw == "null" || raw[0] == '{' || raw[0] == '[' || len(raw) > maxText {
		return
	}
	text, name := raw, raw
	if raw[0] == '"' {
		var ok bool
		if text, ok = jsontext.Unquote(raw); !ok || text == "" {
			return
		}
		if strings.Contains(raw, `\`) {
			name = string(jsontext.AppendString(nil, text))
		}
	}
	if c.part != "" && !strings.Contains(strings.ToLower(text), c.part) {
		return
	}
	if n, ok := c.counts[name]; ok {
		c.counts[name] = n + 1
	} else if len(c.counts) < maxDistinct {
		c.counts[strings.Clone(name)] = 1
	}
}

// top returns the values that most of the sample have, and of equally many the first by
// their text.
func (c *counter) top() []Value {
	out := make([]Value, 0, len(c.counts))
	for name, n := range c.counts {
		out = append(out, Value{json.RawMessage(name), n})
	}
	slices.SortFunc(out, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(string(a.Name), string(b.Name)))
	})
	return out[:min(len(out), maxValues)]
}
