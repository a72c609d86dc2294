package local

import (
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
)

// asks reports whether the client must ask the server for a flag. Besides flags that
// it decides differently, these are flags with variants or early exit whose condition
// sets it cannot all decide: a client that cannot decide a set tries the next one,
// and would take the variant of that.
func (l *builder) asks(d *eval.Definition, f *filters.Filters) bool {
	if !l.opts.Client.decides(d, f) {
		return true
	}
	return (len(f.Variants) > 0 || f.EarlyExit) && len(f.Groups) > 1 && l.isUncertain(f, map[int64]bool{d.ID: true})
}

// isUncertain reports whether the definition of a condition set keeps the client from
// deciding it. seen has the flags on the way: a cycle is uncertain.
func (l *builder) isUncertain(f *filters.Filters, seen map[int64]bool) bool {
	for i := range f.Groups {
		for j := range f.Groups[i].Properties {
			if l.isUncertainProperty(&f.Groups[i].Properties[j], f.Aggregation != nil, seen) {
				return true
			}
		}
	}
	return false
}

func (l *builder) isUncertainProperty(p *filters.Property, byGroup bool, seen map[int64]bool) bool {
	id, err := strconv.ParseInt(filters.Text(p.Value), 10, 64)
	switch p.Type {
	case "cohort":
		return err != nil || l.isUncertainCohort(id, map[int64]bool{})
	case "flag":
		id, err = strconv.ParseInt(p.Key, 10, 64)
		return err != nil || l.isUncertainFlag(id, byGroup, seen)
	}
	return strings.Contains(p.Operator, "/")
}

func (l *builder) isUncertainFlag(id int64, byGroup bool, seen map[int64]bool) bool {
	flag := l.flagsByID[id]
	if flag == nil || seen[id] || flag.definition.ExperienceContinuity ||
		!l.opts.Client.GroupDependencies && (byGroup || flag.groups) {
		return true
	}
	f, err := filters.Parse(flag.definition.Filters)
	if err != nil || !l.opts.Client.decides(flag.definition, &f) {
		return true
	}
	seen[id] = true
	defer delete(seen, id)
	return l.isUncertain(&f, seen)
}

// isUncertainCohort reports whether a cohort keeps the client from deciding. Current
// clients ask the server as soon as they find a cohort that they do not have.
func (l *builder) isUncertainCohort(id int64, seen map[int64]bool) bool {
	c, known := l.cohorts[id]
	if !known || c.Static {
		return !l.opts.Client.Current
	}
	if seen[id] {
		return true
	}
	seen[id] = true
	tree, err := filters.ParseTree(c.Filters)
	return err != nil || tree != nil && l.isUncertainTree(tree, seen)
}

func (l *builder) isUncertainTree(tree *filters.Tree, seen map[int64]bool) bool {
	for i := range tree.Properties {
		p := &tree.Properties[i]
		id, err := strconv.ParseInt(filters.Text(p.Value), 10, 64)
		if strings.Contains(p.Operator, "/") || p.Type == "cohort" && (err != nil || l.isUncertainCohort(id, seen)) {
			return true
		}
	}
	for i := range tree.Trees {
		if l.isUncertainTree(&tree.Trees[i], seen) {
			return true
		}
	}
	return false
}
