package rules

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/core/flags/document"
)

// CheckCohort checks the filters of a dynamic cohort and returns the text to
// store: {"properties": nested groups}. self is the id of the cohort, 0 for a new
// one; trees are those of all cohorts of the project. The error is the first
// broken rule, an Invalid fault on the field "filters".
func CheckCohort(filters json.RawMessage, self int64, trees map[int64]document.CohortTree, refs References, limits Limits) (json.RawMessage, error) {
	c := newChecker("cohort", refs, limits)
	if len(filters) > c.limits.FiltersBytes {
		return nil, bad(CodeInvalid, "filters are %d bytes long, at most %d are allowed", len(filters), c.limits.FiltersBytes)
	}
	if err := checkText(filters); err != nil {
		return nil, err
	}
	tree := document.CohortGroups(filters)
	if tree == nil {
		return nil, bad(CodeInvalid, `filters must have the form {"properties": {"type": "AND", "values": […]}}`)
	}
	t := &treeChecker{checker: c, self: self, trees: trees}
	checked, err := t.group(tree, "properties")
	if err != nil {
		return nil, err
	}
	if err := c.patternSum(); err != nil {
		return nil, err
	}
	d := document.NewObject()
	d.Set("properties", checked)
	return d.Raw(), nil
}

type treeChecker struct {
	*checker
	self  int64
	trees map[int64]document.CohortTree
}

// group checks a group of groups or filters.
func (t *treeChecker) group(raw json.RawMessage, at string) (json.RawMessage, error) {
	d, err := document.Parse(raw)
	if err != nil {
		return nil, bad(CodeInvalid, "%s must be an object, got %s", at, document.KindOf(raw))
	}
	if len(d.Names) == 0 {
		return json.RawMessage("{}"), nil
	}
	kind, _ := d.Get("type")
	word, _ := document.Text(kind)
	if word = strings.ToUpper(word); word != "AND" && word != "OR" {
		return nil, bad(CodeInvalid, "%s.type must be AND or OR", at)
	}
	d.Set("type", document.Quote(word)) // clients compare the word as it is
	values, _ := d.Get("values")
	list, err := document.ParseList(values)
	if err != nil {
		return nil, bad(CodeInvalid, "%s.values must be a list", at)
	}
	for i, raw := range list {
		if list[i], err = t.node(raw, fmt.Sprintf("%s.values[%d]", at, i)); err != nil {
			return nil, err
		}
	}
	d.Set("values", document.JoinList(list))
	return d.Raw(), nil
}

func (t *treeChecker) node(raw json.RawMessage, at string) (json.RawMessage, error) {
	d, err := document.Parse(raw)
	if err != nil {
		return nil, bad(CodeInvalid, "%s must be an object, got %s", at, document.KindOf(raw))
	}
	if _, group := d.Get("values"); group || len(d.Names) == 0 {
		return t.group(raw, at)
	}
	return d.Raw(), t.leaf(d, at)
}

// leaf checks a filter on a property of the person, or on another cohort.
func (t *treeChecker) leaf(p *document.Object, at string) error {
	if raw, ok := p.Given("negation"); ok && document.KindOf(raw) != "boolean" {
		return bad(CodeInvalid, "%s.negation must be true or false", at)
	}
	kind, _ := p.Get("type")
	switch word, _ := document.Text(kind); {
	case word == "cohort":
		return t.nested(p, at)
	case word == "behavioral":
		return bad(CodeInvalid, "%s: a cohort of what people did cannot be computed here; use person properties", at)
	case word != "person" && len(kind) > 0 && !document.IsNull(kind):
		return bad(CodeInvalid, "%s.type must be person or cohort, got %s", at, shown(kind))
	}
	raw, _ := p.Get("key")
	if name, ok := document.Text(raw); !ok || name == "" {
		return bad(CodeInvalid, "%s.key must name the property", at)
	}
	return t.operator(p, at)
}

// nested checks a filter on another cohort, which must not depend on this one.
func (t *treeChecker) nested(p *document.Object, at string) error {
	if err := t.cohort(p, at); err != nil {
		return err
	}
	raw, _ := p.Get("value")
	id, _ := document.Integer(raw)
	if t.self != 0 && document.LeadsTo(id, t.self, t.trees, map[int64]bool{}) {
		return bad(CodeInvalid, "%s: cohorts would be made of each other in a circle", at)
	}
	return nil
}
