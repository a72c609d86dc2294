package flags

import (
	"encoding/json"
	"fmt"
	"strings"
)

// checkCohort holds the filters of a dynamic cohort against the write rules
// and returns the text to store: {"properties": nested groups}. Trees are what
// the other cohorts of the project are made of.
func checkCohort(filters json.RawMessage, self int64, trees map[int64]cohortTree, c *checker) (json.RawMessage, error) {
	if len(filters) > c.limits.FiltersBytes {
		return nil, bad(codeInvalid, "filters are %d bytes long, at most %d are allowed", len(filters), c.limits.FiltersBytes)
	}
	tree := cohortProperties(filters)
	if tree == nil {
		return nil, bad(codeInvalid, `filters must have the form {"properties": {"type": "AND", "values": […]}}`)
	}
	t := &treeChecker{checker: c, self: self, trees: trees}
	checked, err := t.group(tree, "properties")
	if err != nil {
		return nil, err
	}
	d := &document{values: map[string]json.RawMessage{}}
	d.set("properties", checked)
	return d.raw(), nil
}

type treeChecker struct {
	*checker
	self  int64
	trees map[int64]cohortTree
}

// group checks a group of groups or filters.
func (t *treeChecker) group(raw json.RawMessage, at string) (json.RawMessage, error) {
	d, err := parseDocument(raw)
	if err != nil {
		return nil, bad(codeInvalid, "%s must be an object, got %s", at, kindOf(raw))
	}
	if len(d.names) == 0 {
		return json.RawMessage("{}"), nil
	}
	kind, _ := d.get("type")
	if word, _ := text(kind); !strings.EqualFold(word, "AND") && !strings.EqualFold(word, "OR") {
		return nil, bad(codeInvalid, "%s.type must be AND or OR", at)
	}
	values, _ := d.get("values")
	list, err := parseList(values)
	if err != nil {
		return nil, bad(codeInvalid, "%s.values must be a list", at)
	}
	for i, raw := range list {
		if list[i], err = t.node(raw, fmt.Sprintf("%s.values[%d]", at, i)); err != nil {
			return nil, err
		}
	}
	d.set("values", joinList(list))
	return d.raw(), nil
}

func (t *treeChecker) node(raw json.RawMessage, at string) (json.RawMessage, error) {
	d, err := parseDocument(raw)
	if err != nil {
		return nil, bad(codeInvalid, "%s must be an object, got %s", at, kindOf(raw))
	}
	if _, group := d.get("values"); group || len(d.names) == 0 {
		return t.group(raw, at)
	}
	return d.raw(), t.leaf(d, at)
}

// leaf checks a filter on a property of the person, or on another cohort.
func (t *treeChecker) leaf(p *document, at string) error {
	if raw, ok := p.given("negation"); ok && kindOf(raw) != "boolean" {
		return bad(codeInvalid, "%s.negation must be true or false", at)
	}
	kind, _ := p.get("type")
	switch word, _ := text(kind); {
	case word == "cohort":
		return t.nested(p, at)
	case word == "behavioral":
		return bad(codeInvalid, "%s: a cohort of what people did cannot be computed here; use person properties", at)
	case word != "person" && len(kind) > 0 && !isNull(kind):
		return bad(codeInvalid, "%s.type must be person or cohort, got %s", at, shown(kind))
	}
	raw, _ := p.get("key")
	if name, ok := text(raw); !ok || name == "" {
		return bad(codeInvalid, "%s.key must name the property", at)
	}
	return t.operator(p, at)
}

// nested checks a filter on another cohort, which must not lead back.
func (t *treeChecker) nested(p *document, at string) error {
	if err := t.cohort(p, at); err != nil {
		return err
	}
	raw, _ := p.get("value")
	id, _ := integer(raw)
	if t.self != 0 && leadsTo(id, t.self, t.trees, map[int64]bool{}) {
		return bad(codeInvalid, "%s: cohorts would be made of each other in a circle", at)
	}
	return nil
}

func leadsTo(from, to int64, trees map[int64]cohortTree, seen map[int64]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, next := range trees[from].cohorts {
		if leadsTo(next, to, trees, seen) {
			return true
		}
	}
	return false
}
