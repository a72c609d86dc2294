package local

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/flags/document"
)

// trees returns the property trees of the dynamic cohorts that flags use, nested
// ones included. Static cohorts have no tree: clients ask the server for them.
func (l *builder) trees(send bool) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if !send {
		return out
	}
	var add func(id int64)
	add = func(id int64) {
		c, ok := l.cohorts[id]
		name := strconv.FormatInt(id, 10)
		if _, done := out[name]; !ok || c.Static || done {
			return
		}
		tree := document.CohortGroups(c.Filters)
		if tree == nil {
			tree = json.RawMessage("{}")
		}
		out[name] = exportedTree(tree)
		for _, next := range document.ReadCohortTree(c.Filters).Cohorts {
			add(next)
		}
	}
	for _, d := range l.stored.Flags {
		if d.Deleted {
			continue
		}
		for _, id := range document.CohortReferences(d.Filters) {
			add(id)
		}
	}
	return out
}

// inlineCohort replaces the only cohort of a flag by the properties of the cohort
// if condition sets can express them: the cohort is the only filter of its set, no set overrides the variant or buckets groups, and the tree is an AND of person
// properties, or an OR of such ANDs, without negation.
func (l *builder) inlineCohort(d *document.Object) {
	if _, grouped := d.Given("aggregation_group_type_index"); grouped {
		return
	}
	raw, _ := d.Get("groups")
	sets, err := document.ParseList(raw)
	if err != nil {
		return
	}
	at, id, ok := onlyCohort(sets)
	if !ok {
		return
	}
	cohort, known := l.cohorts[id]
	if !known || cohort.Static {
		return
	}
	alternatives, ok := alternativesOf(document.CohortGroups(cohort.Filters))
	if !ok {
		return
	}
	var out []json.RawMessage
	out = append(out, sets[:at]...)
	for _, properties := range alternatives {
		set, err := document.Parse(sets[at])
		if err != nil {
			return
		}
		set.Set("properties", document.JoinList(properties))
		out = append(out, set.Raw())
	}
	out = append(out, sets[at+1:]...)
	d.Set("groups", document.JoinList(out))
}

// onlyCohort returns the only set with a cohort and the id of the cohort, if the
// cohort is the only filter of the set.
func onlyCohort(sets []json.RawMessage) (at int, id int64, ok bool) {
	for i, raw := range sets {
		set, err := document.Parse(raw)
		if err != nil {
			return 0, 0, false
		}
		if raw, given := set.Given("variant"); given && string(raw) != `""` {
			return 0, 0, false
		}
		if _, grouped := set.Given("aggregation_group_type_index"); grouped {
			return 0, 0, false
		}
		raw, _ := set.Get("properties")
		list, _ := document.ParseList(raw)
		for _, raw := range list {
			p, err := document.Parse(raw)
			if err != nil {
				return 0, 0, false
			}
			if kind, _ := p.Get("type"); string(kind) != `"cohort"` {
				continue
			}
			operator, _ := p.Get("operator")
			value, _ := p.Get("value")
			n, isID := document.Integer(value)
			if ok || !isID || len(list) != 1 || string(operator) == `"not_in"` {
				return 0, 0, false
			}
			at, id, ok = i, n, true
		}
	}
	return at, id, ok
}

// node is a group in the tree of a cohort, or a filter.
type node struct {
	leaf     json.RawMessage // set for a filter
	any      bool
	children []node
}

// alternativesOf returns the tree as alternatives, each a list of filters that
// must all match.
func alternativesOf(tree json.RawMessage) ([][]json.RawMessage, bool) {
	root, ok := readNode(tree)
	if !ok {
		return nil, false
	}
	root = root.flat()
	if root.leaf != nil {
		return [][]json.RawMessage{{root.leaf}}, true
	}
	if all, ok := root.leaves(); ok && !root.any {
		return [][]json.RawMessage{all}, true
	}
	if !root.any {
		return nil, false
	}
	var out [][]json.RawMessage
	for _, child := range root.children {
		child = child.flat()
		switch all, ok := child.leaves(); {
		case child.leaf != nil:
			out = append(out, []json.RawMessage{child.leaf})
		case ok && !child.any:
			out = append(out, all)
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

// readNode reads a tree whose filters are all person properties without
// negation; false for any other.
func readNode(raw json.RawMessage) (node, bool) {
	d, err := document.Parse(raw)
	if err != nil {
		return node{}, false
	}
	values, isGroup := d.Get("values")
	if !isGroup {
		kind, _ := d.Get("type")
		negation, _ := d.Get("negation")
		d.Remove("negation")
		return node{leaf: d.Raw()}, string(kind) == `"person"` && string(negation) != "true"
	}
	list, err := document.ParseList(values)
	if err != nil || len(list) == 0 {
		return node{}, false
	}
	kind, _ := d.Get("type")
	word, _ := document.Text(kind)
	n := node{any: strings.EqualFold(word, "OR")}
	for _, raw := range list {
		child, ok := readNode(raw)
		if !ok {
			return node{}, false
		}
		n.children = append(n.children, child)
	}
	return n, true
}

// flat removes enclosing groups with a single child.
func (n node) flat() node {
	for len(n.children) == 1 {
		n = n.children[0]
	}
	return n
}

// leaves returns the filters of a group without nested groups.
func (n node) leaves() ([]json.RawMessage, bool) {
	var out []json.RawMessage
	for _, c := range n.children {
		if c = c.flat(); c.leaf == nil {
			return nil, false
		}
		out = append(out, c.leaf)
	}
	return out, len(out) > 0
}
