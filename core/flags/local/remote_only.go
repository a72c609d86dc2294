package local

import (
	"encoding/json"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
)

// remoteOnlySet is the condition set of a flag that a client must not decide. All
// clients fail to decide it and ask the server: the old ones because the property
// is missing, the newer ones because they do not know the operator.
const remoteOnlySet = `[{"properties":[{"key":"$server_evaluation","type":"person","operator":"guidon/server_evaluation","value":"required","remote_only":true}],"rollout_percentage":100}]`

// remoteOnly removes from filters what clients read before the condition sets, and
// replaces the condition sets. Variants and payloads stay: clients look up the
// payload of the value that the server gives.
func remoteOnly(d *document.Object) {
	for _, name := range []string{"super_groups", "feature_enrollment", "holdout", "holdout_groups", "early_exit", "aggregation_group_type_index"} {
		d.Remove(name)
	}
	d.Set("groups", json.RawMessage(remoteOnlySet))
}

// decides reports whether the client decides the flag as the server does.
func (c Client) decides(flag *eval.Definition, f *filters.Filters) bool {
	if f.Enrollment || len(f.SuperGroups) > 0 {
		return false
	}
	if f.Aggregation != nil && mixesSubjects(f) {
		return false
	}
	if c.Current {
		return true
	}
	earlyExit := f.EarlyExit && len(f.Groups) > 1
	byDevice := flag.ByDevice && f.Aggregation == nil
	return f.Holdout == nil && !earlyExit && !byDevice && !mixesSubjects(f) && !excludesCohort(f)
}

// mixesSubjects reports whether a condition set has another subject than the flag.
func mixesSubjects(f *filters.Filters) bool {
	for i := range f.Groups {
		g := &f.Groups[i]
		if g.AggregationSet && !sameSubject(g.Aggregation, f.Aggregation) {
			return true
		}
	}
	return false
}

func sameSubject(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func excludesCohort(f *filters.Filters) bool {
	for i := range f.Groups {
		for _, p := range f.Groups[i].Properties {
			if p.Type == "cohort" && p.Operator == "not_in" {
				return true
			}
		}
	}
	return false
}

// bucketsGroups reports whether a flag or one of its condition sets is about groups.
func bucketsGroups(f *filters.Filters) bool { return f.Aggregation != nil || mixesSubjects(f) }

// currentHoldout gives the older form of a holdout as the form that clients read.
func currentHoldout(d *document.Object, f *filters.Filters) {
	if _, given := d.Given("holdout"); given || f.Holdout == nil {
		return
	}
	holdout := document.NewObject()
	id := document.Quote(f.Holdout.ID)
	if n, ok := document.Integer(id); ok {
		id = document.Encode(n)
	}
	holdout.Set("id", id)
	holdout.Set("exclusion_percentage", document.Encode(f.Holdout.Exclusion))
	d.Set("holdout", holdout.Raw())
	d.Remove("holdout_groups")
}
