// Package graph reads the dependencies between the flags of a project from their
// definitions. It is pure.
package graph

import (
	"bytes"
	"slices"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// Closure returns the flags with the given ids that exist, and all flags that they
// depend on, in the form of the write rules. defs is ordered by id.
func Closure(defs []eval.Definition, ids []int64) map[int64]rules.FlagRef {
	out := map[int64]rules.FlagRef{}
	for open := slices.Clone(ids); len(open) > 0; open = open[1:] {
		if _, done := out[open[0]]; done {
			continue
		}
		if d := find(defs, open[0]); d != nil {
			ref := refOf(d)
			out[d.ID] = ref
			open = append(open, ref.DependsOn...)
		}
	}
	return out
}

// Dependents returns the flags whose conditions read the flag with an id, by id.
func Dependents(defs []eval.Definition, id int64) (out []*eval.Definition) {
	for i := range defs {
		if d := &defs[i]; slices.Contains(dependencies(d), id) {
			out = append(out, d)
		}
	}
	return out
}

func find(defs []eval.Definition, id int64) *eval.Definition {
	at, ok := slices.BinarySearchFunc(defs, id, func(d eval.Definition, id int64) int { return int(d.ID - id) })
	if !ok {
		return nil
	}
	return &defs[at]
}

var dependencyOperator = []byte("flag_evaluates_to")

// dependencies returns the ids of the flags that a flag depends on. Most have none,
// and their filters are not parsed.
func dependencies(d *eval.Definition) []int64 {
	if !bytes.Contains(d.Filters, dependencyOperator) {
		return nil
	}
	return document.FlagDependencies(d.Filters)
}

func refOf(d *eval.Definition) rules.FlagRef {
	return rules.FlagRef{Key: d.Key, Active: d.Active, DependsOn: dependencies(d), Variants: variantTexts(d.Filters)}
}

// variantTexts returns the texts that a flag with the filters evaluates to: the keys
// of its variants and the name of its holdout. It returns none for filters that
// cannot be read.
func variantTexts(raw []byte) []string {
	f, err := filters.Parse(raw)
	if err != nil {
		return nil
	}
	var out []string
	for _, v := range f.Variants {
		out = append(out, v.Key)
	}
	if f.Holdout != nil {
		out = append(out, "holdout-"+f.Holdout.ID)
	}
	return out
}
