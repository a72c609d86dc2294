package match

import (
	"encoding/json"
	"slices"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/text"
)

// How much of what was seen is shown.
const (
	maxShown      = 500 // bytes of a text
	maxShownTexts = 20  // of elements
)

// elements explains the conditions on elements one by one, and then that
// those on one element must hold on the same one.
func (e *explainer) elements() {
	conditions, together := 0, match.True
	for _, c := range elementConditions(e.in) {
		test, err := match.CompileElements(c.spec)
		if err != nil || test.Always() {
			continue
		}
		r := match.Of(test.Match(&e.seen.chain))
		if c.field != "selector" {
			conditions, together = conditions+1, both(together, r)
		}
		e.add(e.element(c), r)
	}
	if conditions > 1 && together == match.True {
		spec := elementSpec(e.in)
		spec.Selector = ""
		test, err := match.CompileElements(spec)
		e.add(FieldExplanation{Field: "element", Attr: attrOf(e.index, ""), Reason: "No single element has all of it."},
			match.Of(err == nil && test.Match(&e.seen.chain)))
	}
}

func (e *explainer) element(c elementCondition) FieldExplanation {
	elements := e.seen.chain.Elements()
	f := FieldExplanation{Field: c.field, Matching: string(match.Exact), Reason: "No element has it."}
	switch c.field {
	case "tag_name":
		f.Expected = quoted(c.spec.TagName)
	case "text":
		way, _ := match.ParseMatching(c.spec.TextMatching, match.Exact)
		f.Expected, f.Matching = quoted(c.spec.Text), string(way)
	case "href":
		way, _ := match.ParseMatching(c.spec.HrefMatching, match.Exact)
		f.Expected, f.Matching = quoted(c.spec.Href), string(way)
	default:
		f.Expected, f.Matching, f.Reason = quoted(c.spec.Selector), "", "No element and its ancestors fit the selector."
	}
	f.Seen = elementTexts(elements, c.field)
	if len(elements) == 0 {
		f.Reason = "The event has no elements."
	}
	return f
}

// elementTexts is the JSON list of what the elements have, innermost first;
// nil when none has any. Of a selector it is what could be selected.
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
		texts = append(texts, shown(text))
	}
	if texts == nil {
		return nil
	}
	raw, _ := json.Marshal(texts) // texts always can be
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

func shown(s string) string { return text.Ellipsis(s, maxShown) }

func quoted(s string) json.RawMessage { return match.AppendString(nil, shown(s)) }

// cutJSON copies a JSON value; one that is too long becomes the start of its
// text.
func cutJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxShown {
		return quoted(string(raw))
	}
	return slices.Clone(raw)
}
