package flags

import (
	"encoding/json"
	"strconv"
	"strings"
)

// trees are the property trees of the dynamic cohorts that flags use, and of
// the cohorts these are made of. A static one has no tree: clients that meet
// it ask the server.
func (l *localizer) trees(send bool) map[string]json.RawMessage {
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
		tree := cohortProperties(c.Filters)
		if tree == nil {
			tree = json.RawMessage("{}")
		}
		out[name] = tree
		for _, next := range readCohortTree(c.Filters).cohorts {
			add(next)
		}
	}
	for _, d := range l.stored.Flags {
		if d.Deleted {
			continue
		}
		for _, id := range cohortsUsed(d.Filters) {
			add(id)
		}
	}
	return out
}

// inlineCohort replaces the one cohort a flag asks for by the cohort's own
// properties, when condition sets can say the same: the cohort is alone in
// its set, no set overrides the variant or buckets groups, and the tree is an AND of person
// properties, or an OR of such ANDs, without negation.
func (l *localizer) inlineCohort(d *document) {
	if _, grouped := d.given("aggregation_group_type_index"); grouped {
		return
	}
	raw, _ := d.get("groups")
	sets, err := parseList(raw)
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
	alternatives, ok := alternativesOf(cohortProperties(cohort.Filters))
	if !ok {
		return
	}
	var out []json.RawMessage
	out = append(out, sets[:at]...)
	for _, properties := range alternatives {
		set, err := parseDocument(sets[at])
		if err != nil {
			return
		}
		set.set("properties", joinList(properties))
		out = append(out, set.raw())
	}
	out = append(out, sets[at+1:]...)
	d.set("groups", joinList(out))
}

// onlyCohort finds the set that asks for membership of a cohort and nothing
// else, when it is the only cohort of the flag.
func onlyCohort(sets []json.RawMessage) (at int, id int64, ok bool) {
	for i, raw := range sets {
		set, err := parseDocument(raw)
		if err != nil {
			return 0, 0, false
		}
		if raw, given := set.given("variant"); given && string(raw) != `""` {
			return 0, 0, false
		}
		if _, grouped := set.given("aggregation_group_type_index"); grouped {
			return 0, 0, false
		}
		raw, _ := set.get("properties")
		list, _ := parseList(raw)
		for _, raw := range list {
			p, err := parseDocument(raw)
			if err != nil {
				return 0, 0, false
			}
			if kind, _ := p.get("type"); string(kind) != `"cohort"` {
				continue
			}
			operator, _ := p.get("operator")
			value, _ := p.get("value")
			n, isID := integer(value)
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

// alternativesOf is the tree as alternatives of filters that must all hold.
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
	d, err := parseDocument(raw)
	if err != nil {
		return node{}, false
	}
	values, isGroup := d.get("values")
	if !isGroup {
		kind, _ := d.get("type")
		negation, _ := d.get("negation")
		d.remove("negation")
		return node{leaf: d.raw()}, string(kind) == `"person"` && string(negation) != "true"
	}
	list, err := parseList(values)
	if err != nil || len(list) == 0 {
		return node{}, false
	}
	kind, _ := d.get("type")
	word, _ := text(kind)
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

// flat is n without groups of one around it.
func (n node) flat() node {
	for len(n.children) == 1 {
		n = n.children[0]
	}
	return n
}

// leaves are the filters of a group that holds nothing else.
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
