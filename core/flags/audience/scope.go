package audience

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// scope is the part of a project's definitions that a count needs, and the stored
// data about persons that it reads besides their properties.
type scope struct {
	flags   []eval.Definition
	cohorts []eval.CohortDefinition

	staticCohorts bool // a static cohort is tested
	hashKeys      bool // a flag with experience continuity is evaluated
}

// scopeOf returns the flags and cohorts that filters refer to, directly or through
// others. The result of filters does not depend on the remaining ones.
func scopeOf(filters json.RawMessage, d eval.ProjectDefinitions) scope {
	var s scope
	seenFlags, seenCohorts := map[int64]bool{}, map[int64]bool{}
	open := []json.RawMessage{filters}
	for len(open) > 0 {
		raw := open[len(open)-1]
		open = open[:len(open)-1]
		flagNames, cohortIDs := references(raw)
		for _, f := range d.Flags {
			if !seenFlags[f.ID] && (slices.Contains(flagNames, f.Key) || slices.Contains(flagNames, strconv.FormatInt(f.ID, 10))) {
				seenFlags[f.ID] = true
				s.flags = append(s.flags, f)
				s.hashKeys = s.hashKeys || f.ExperienceContinuity
				open = append(open, f.Filters)
			}
		}
		for _, c := range d.Cohorts {
			if !seenCohorts[c.ID] && slices.Contains(cohortIDs, strconv.FormatInt(c.ID, 10)) {
				seenCohorts[c.ID] = true
				s.cohorts = append(s.cohorts, c)
				s.staticCohorts = s.staticCohorts || c.Static
				open = append(open, c.Filters)
			}
		}
	}
	return s
}

// references returns the keys or ids of flags, and the ids of cohorts, that the
// filters anywhere in a JSON document name.
func references(raw json.RawMessage) (flags, cohorts []string) {
	var document any
	if len(raw) == 0 || json.Unmarshal(raw, &document) != nil {
		return nil, nil // such a definition fails to compile, too
	}
	var visit func(node any)
	visit = func(node any) {
		switch n := node.(type) {
		case []any:
			for _, item := range n {
				visit(item)
			}
		case map[string]any:
			switch n["type"] {
			case "flag":
				flags = append(flags, name(n["key"]))
			case "cohort":
				cohorts = append(cohorts, name(n["value"]))
			}
			for _, item := range n {
				visit(item)
			}
		}
	}
	visit(document)
	return flags, cohorts
}

// name returns an id or a key as text.
func name(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
