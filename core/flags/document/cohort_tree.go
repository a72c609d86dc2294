package document

import (
	"encoding/json"
	"slices"
)

// properties is the tree of groups inside the filters of a cohort, which may
// or may not be wrapped in the name "properties".
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

// CohortTree is what the rules ask of the tree of a cohort.
type CohortTree struct {
	Cohorts     []int64
	Behavioural bool
}

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

// NestsCohort reports whether the tree is made of the cohort.
func NestsCohort(filters json.RawMessage, id int64) bool {
	return slices.Contains(ReadCohortTree(filters).Cohorts, id)
}

// IsBehavioural reports whether a cohort, or one it is made of, selects people
// by what they did.
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
