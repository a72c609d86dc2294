package document

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// ConditionLists are the names under which filters keep lists of condition sets.
var ConditionLists = []string{"groups", "super_groups", "holdout_groups"}

// RewriteProperties lets fn change every filter of every condition set in the
// named lists, and those at the top. Parts that cannot be parsed stay unchanged.
func RewriteProperties(filters json.RawMessage, lists []string, fn func(p *Object)) json.RawMessage {
	d, err := Parse(filters)
	if err != nil {
		return filters
	}
	for _, name := range lists {
		raw, _ := d.Get(name)
		sets, err := ParseList(raw)
		if err != nil {
			continue
		}
		for i, raw := range sets {
			if set, err := Parse(raw); err == nil {
				rewriteSet(set, fn)
				sets[i] = set.Raw()
			}
		}
		d.Set(name, JoinList(sets))
	}
	rewriteSet(d, fn)
	return d.Raw()
}

func rewriteSet(set *Object, fn func(p *Object)) {
	raw, _ := set.Get("properties")
	list, err := ParseList(raw)
	if err != nil {
		return
	}
	for i, raw := range list {
		if p, err := Parse(raw); err == nil {
			fn(p)
			list[i] = p.Raw()
		}
	}
	set.Set("properties", JoinList(list))
}

// EachProperty calls fn for every filter of every condition set. It skips parts
// that cannot be parsed.
func EachProperty(filters json.RawMessage, fn func(p *Object)) {
	RewriteProperties(filters, ConditionLists, fn)
}

// FlagDependencies lists the flags that stored filters depend on.
func FlagDependencies(filters json.RawMessage) []int64 {
	var ids []int64
	if !bytes.Contains(filters, []byte(`"flag"`)) {
		return nil
	}
	EachProperty(filters, func(p *Object) {
		if raw, _ := p.Get("type"); string(raw) == `"flag"` {
			key, _ := p.Get("key")
			if id, ok := Integer(key); ok && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// CohortReferences lists the cohorts that filters test membership of.
func CohortReferences(filters json.RawMessage) []int64 {
	var ids []int64
	if !bytes.Contains(filters, []byte(`"cohort"`)) {
		return nil
	}
	EachProperty(filters, func(p *Object) {
		if raw, _ := p.Get("type"); string(raw) == `"cohort"` {
			value, _ := p.Get("value")
			if id, ok := Integer(value); ok && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// Normalized returns stored filters in the form for callers: filters without
// "groups" become one condition set of the top-level properties and the top-level
// rollout. All other parts stay unchanged.
func Normalized(filters json.RawMessage) (json.RawMessage, error) {
	d, err := Parse(filters)
	if err != nil {
		return nil, err
	}
	if _, ok := d.Get("groups"); ok {
		return filters, nil
	}
	properties, ok := d.Given("properties")
	if !ok {
		properties = json.RawMessage("[]")
	}
	set := NewObject()
	set.Set("properties", properties)
	rollout, ok := d.Get("rollout_percentage")
	if !ok {
		rollout = json.RawMessage("null")
	}
	set.Set("rollout_percentage", rollout)
	d.Remove("properties")
	d.Remove("rollout_percentage")
	d.Set("groups", JoinList([]json.RawMessage{set.Raw()}))
	return d.Raw(), nil
}

// filterSummary has the parts of filters that this package reads.
type filterSummary struct {
	Groups []struct {
		Properties  []json.RawMessage `json:"properties"`
		Rollout     *float64          `json:"rollout_percentage"`
		Variant     *string           `json:"variant"`
		Aggregation *int64            `json:"aggregation_group_type_index"`
	} `json:"groups"`
	Aggregation  *int64 `json:"aggregation_group_type_index"`
	Multivariate *struct {
		Variants []struct {
			Key     string  `json:"key"`
			Rollout float64 `json:"rollout_percentage"`
		} `json:"variants"`
	} `json:"multivariate"`
}

// SimpleRollout reports whether normalized filters are one condition set for persons
// without properties, and then its rollout in whole percent (the contract has
// an integer there; filters keep the fraction).
func SimpleRollout(filters json.RawMessage) (bool, *int64) {
	var o filterSummary
	if json.Unmarshal(filters, &o) != nil || len(o.Groups) != 1 || len(o.Groups[0].Properties) > 0 || o.Aggregation != nil {
		return false, nil
	}
	if o.Groups[0].Rollout == nil {
		return true, nil
	}
	whole := int64(math.Round(*o.Groups[0].Rollout))
	return true, &whole
}

// FullyRolledOut reports whether a condition set of the filters matches everyone
// and, for a flag with variants, has the same variant for everyone.
func FullyRolledOut(filters json.RawMessage) bool {
	normal, err := Normalized(filters)
	if err != nil {
		return false
	}
	var o filterSummary
	if json.Unmarshal(normal, &o) != nil {
		return false
	}
	single := o.Multivariate == nil || len(o.Multivariate.Variants) == 0
	if o.Multivariate != nil {
		for _, v := range o.Multivariate.Variants {
			single = single || v.Rollout == 100
		}
	}
	for _, g := range o.Groups {
		everyone := len(g.Properties) == 0 && (g.Rollout == nil || *g.Rollout == 100)
		if everyone && (single || g.Variant != nil && *g.Variant != "") {
			return true
		}
	}
	return false
}

// HasVariants reports whether the filters list variants. Filters that cannot be
// read have none.
func HasVariants(filters json.RawMessage) bool {
	var s filterSummary
	_ = json.Unmarshal(filters, &s)
	return s.Multivariate != nil && len(s.Multivariate.Variants) > 0
}

// ConditionSets counts the condition sets of filters, -1 for those that cannot be
// read, and reports whether the filters have the list at all.
func ConditionSets(filters json.RawMessage) (count int, exists bool) {
	d, err := Parse(filters)
	if err != nil {
		return -1, true
	}
	raw, exists := d.Get("groups")
	list, err := ParseList(raw)
	if err != nil {
		return -1, exists
	}
	return len(list), exists
}

// RenameEnrollment changes the key in the early-access conditions of a flag to
// its new key.
func RenameEnrollment(filters json.RawMessage, to string) json.RawMessage {
	const prefix = "$feature_enrollment/"
	d, err := Parse(filters)
	if err != nil {
		return filters
	}
	if _, ok := d.Given("super_groups"); !ok {
		return filters
	}
	return RewriteProperties(filters, []string{"super_groups"}, func(p *Object) {
		raw, _ := p.Get("key")
		if name, ok := Text(raw); ok && strings.HasPrefix(name, prefix) {
			p.Set("key", Quote(prefix+to))
		}
	})
}

// Shown returns stored filters as answers show them: with their list of
// condition sets, and each cohort filter with the name of its cohort, null for a
// deleted cohort. Unreadable filters are returned unchanged.
func Shown(filters json.RawMessage, names map[int64]string) json.RawMessage {
	normal, err := Normalized(filters)
	if err != nil {
		return filters
	}
	if names == nil {
		return normal
	}
	return RewriteProperties(normal, ConditionLists, func(p *Object) {
		if raw, _ := p.Get("type"); string(raw) != `"cohort"` {
			return
		}
		raw, _ := p.Get("value")
		name := json.RawMessage("null")
		if id, ok := Integer(raw); ok {
			if n, ok := names[id]; ok {
				name = Quote(n)
			}
		}
		p.Set("cohort_name", name)
	})
}

// HasLegacyFilters reports whether filters without condition sets have the members
// of the oldest form: the properties and the rollout of the only set.
func HasLegacyFilters(filters *Object) bool {
	_, properties := filters.Get("properties")
	_, rollout := filters.Get("rollout_percentage")
	return properties || rollout
}
