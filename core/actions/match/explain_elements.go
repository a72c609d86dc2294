package match

import (
	"encoding/json"
	"slices"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/text"
)

// Limits on the values shown in explanations.
const (
	maxShownBytes = 500 // bytes
	maxShownTexts = 20  // of elements
)

// addElements explains the conditions on elements one by one, and then whether
// one element fulfils all of them.
func (e *explainer) addElements() {
	conditions, together := 0, match.True
	for _, c := range elementConditions(e.in) {
		test, err := match.CompileElements(c.spec)
		if err != nil || test.Always() {
			continue
		}
		r := matchChain(test, e.view, e.env)
		if c.field != "selector" {
			conditions, together = conditions+1, and(together, r)
		}
		f := e.elementExplanation(c)
		if r == match.Unknown {
			f.Reason = tooExpensive
		}
		e.add(f, r)
	}
	if conditions > 1 && together == match.True {
		spec := elementSpec(e.in)
		spec.Selector = ""
		test, err := match.CompileElements(spec)
		e.add(FieldExplanation{Field: "element", Attr: attrOf(e.index, ""), Reason: "No single element has all of it."},
			match.Of(err == nil && matchChain(test, e.view, e.env) == match.True))
	}
}

func (e *explainer) elementExplanation(c elementCondition) FieldExplanation {
	elements := e.view.chain.Elements()
	f := FieldExplanation{Field: c.field, Matching: string(match.Exact), Reason: "No element has it."}
	switch c.field {
	case "tag_name":
		f.Expected = quoteJSON(c.spec.TagName)
	case "text":
		way, _ := match.ParseMatching(c.spec.TextMatching, match.Exact)
		f.Expected, f.Matching = quoteJSON(c.spec.Text), string(way)
	case "href":
		way, _ := match.ParseMatching(c.spec.HrefMatching, match.Exact)
		f.Expected, f.Matching = quoteJSON(c.spec.Href), string(way)
	default:
		f.Expected, f.Matching, f.Reason = quoteJSON(c.spec.Selector), "", "No element and its ancestors fit the selector."
	}
	f.Seen = elementTexts(elements, c.field)
	if len(elements) == 0 {
		f.Reason = "The event has no elements."
	}
	return f
}

// elementTexts is the JSON list of the elements' values of a field, innermost
// first; nil if no element has one. For a selector the values are the elements
// in selector notation.
func elementTexts(elements []match.Element, field string) json.RawMessage {
	var texts []string
	for i := range elements {
		text := elementText(&elements[i], field)
		if text == "" || slices.Contains(texts, text) && field != "selector" {
			continue
		}
		if len(texts) == maxShownTexts {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, truncate(text))
	}
	if texts == nil {
		return nil
	}
	raw, _ := json.Marshal(texts) // strings always marshal
	return raw
}

func elementText(e *match.Element, field string) string {
	switch field {
	case "text":
		return e.Text
	case "href":
		return e.Href
	case "tag_name":
		return e.Tag
	}
	text := e.Tag
	if e.ID != "" {
		text += "#" + e.ID
	}
	for _, class := range e.Classes() {
		text += "." + class
	}
	return text
}

func truncate(s string) string { return text.Ellipsis(s, maxShownBytes) }

func quoteJSON(s string) json.RawMessage { return jsontext.AppendString(nil, truncate(s)) }

// truncateJSON copies a JSON value; a long one becomes a string with its
// start.
func truncateJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxShownBytes {
		return quoteJSON(string(raw))
	}
	return slices.Clone(raw)
}
