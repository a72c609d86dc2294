package document

import (
	"encoding/json"
	"slices"
)

// CohortGroups returns the tree of groups in the filters of a cohort, which may
// be wrapped in "properties". It returns nil if there is no tree.
func CohortGroups(filters json.RawMessage) json.RawMessage {
	d, err := Parse(filters)
	if err != nil {
		return nil
	}
	if inner, ok := d.Given("properties"); ok {
		return inner
	}
	if _, ok := d.Get("values"); ok {
		return filters
	}
	return nil
}

// CohortTree is the summary of a cohort that the rules need.
type CohortTree struct {
	Cohorts     []int64
	Behavioural bool
}

// ReadCohortTree returns the summary of the filters of a cohort.
func ReadCohortTree(filters json.RawMessage) CohortTree {
	var t CohortTree
	eachLeaf(CohortGroups(filters), func(p *Object) {
		raw, _ := p.Get("type")
		switch kind, _ := Text(raw); kind {
		case "behavioral":
			t.Behavioural = true
		case "cohort", "static-cohort", "precalculated-cohort":
			value, _ := p.Get("value")
			if id, ok := Integer(value); ok && !slices.Contains(t.Cohorts, id) {
				t.Cohorts = append(t.Cohorts, id)
			}
		}
	})
	return t
}

// eachLeaf calls fn for every filter in a tree of groups.
func eachLeaf(tree json.RawMessage, fn func(p *Object)) {
	d, err := Parse(tree)
	if err != nil {
		return
	}
	raw, ok := d.Get("values")
	if !ok {
		if _, leaf := d.Get("key"); leaf {
			fn(d)
		}
		return
	}
	list, _ := ParseList(raw)
	for _, raw := range list {
		eachLeaf(raw, fn)
	}
}

// RewriteCohort lets fn change every filter in the tree of a cohort. Parts that
// cannot be parsed stay unchanged.
func RewriteCohort(filters json.RawMessage, fn func(p *Object)) json.RawMessage {
	d, err := Parse(filters)
	if err != nil {
		return filters
	}
	if inner, ok := d.Given("properties"); ok {
		d.Set("properties", rewriteLeaves(inner, fn))
		return d.Raw()
	}
	return rewriteLeaves(filters, fn)
}

func rewriteLeaves(tree json.RawMessage, fn func(p *Object)) json.RawMessage {
	d, err := Parse(tree)
	if err != nil {
		return tree
	}
	raw, nested := d.Get("values")
	list, err := ParseList(raw)
	switch {
	case !nested:
		fn(d)
		return d.Raw()
	case err != nil:
		return tree
	}
	for i := range list {
		list[i] = rewriteLeaves(list[i], fn)
	}
	d.Set("values", JoinList(list))
	return d.Raw()
}

// NestsCohort reports whether the tree has a filter on the cohort.
func NestsCohort(filters json.RawMessage, id int64) bool {
	return slices.Contains(ReadCohortTree(filters).Cohorts, id)
}

// IsBehavioural reports whether a cohort, or one nested in it, selects people by
// their events.
func IsBehavioural(id int64, trees map[int64]CohortTree, seen map[int64]bool) bool {
	if seen[id] {
		return false
	}
	seen[id] = true
	if trees[id].Behavioural {
		return true
	}
	for _, next := range trees[id].Cohorts {
		if IsBehavioural(next, trees, seen) {
			return true
		}
	}
	return false
}

// LeadsTo reports whether cohort from is cohort to or depends on it.
func LeadsTo(from, to int64, trees map[int64]CohortTree, seen map[int64]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, next := range trees[from].Cohorts {
		if LeadsTo(next, to, trees, seen) {
			return true
		}
	}
	return false
}
