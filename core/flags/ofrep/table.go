package ofrep

import (
	"strconv"
	"sync"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
)

// table has the encoded parts of the answers for the flags of a set.
type table struct {
	set   *eval.Set
	flags []*flag // by place
}

// flag is one flag of a table.
type flag struct {
	of       *eval.Definition
	head     string   // {"key":"key","reason":"
	failure  string   // {"key":"key","errorCode":"
	on, off  string   // follow the reason, for a value without a variant
	disabled string   // the same for an inactive flag
	variants []named  // the same by variant
	reasons  []reason // by condition that matched
	empty    bool     // the flag has no condition
	metadata string   // its begin
	offValue string   // false, or nothing
}

type named struct{ key, text string }

// tables keeps the table of each project while its set stays the same.
type tables struct{ byProject sync.Map } // int64 to *table

// of returns the table for a set of a project.
func (t *tables) of(projectID int64, set *eval.Set) *table {
	var old *table
	if kept, ok := t.byProject.Load(projectID); ok {
		if old = kept.(*table); old.set == set {
			return old
		}
	}
	made := newTable(set, old)
	t.byProject.Store(projectID, made)
	return made
}

// newTable returns the table of a set, with the flags of an older one that are the
// same.
func newTable(set *eval.Set, old *table) *table {
	t := &table{set: set, flags: make([]*flag, set.Places())}
	set.EachDefinition(func(place int, d *eval.Definition) {
		if old != nil && place < len(old.flags) && old.flags[place] != nil && old.flags[place].of == d {
			t.flags[place] = old.flags[place]
			return
		}
		t.flags[place] = &flag{of: d}
		t.flags[place].build(d)
	})
	return t
}

// build encodes the answers for a flag. Filters that cannot be read have none:
// the flag has no result.
func (f *flag) build(d *eval.Definition) {
	key := string(appendText(nil, d.Key))
	f.head = `{"key":` + key + `,"reason":"`
	f.failure = `{"key":` + key + `,"errorCode":"`
	f.metadata = `,"metadata":{"flagId":` + strconv.FormatInt(d.ID, 10) + `,"version":` + strconv.FormatInt(d.Version, 10)
	raw := d.Filters
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	in, err := filters.Parse(raw)
	if err != nil {
		f.disabled = f.value("false", "", "")
		return
	}
	k, payloads := kindOf(&in)
	f.metadata += `,"type":"` + string(k) + `"`
	if k == kindBoolean && len(in.Variants) == 0 {
		f.offValue = "false"
	}
	f.off = f.value("false", f.offValue, "")
	f.disabled = f.off
	f.values(&in, k, payloads)
	f.empty = len(in.Groups) == 0 && !in.Enrollment && len(in.SuperGroups) == 0 && in.Holdout == nil
	for i := range in.Groups {
		f.reasons = append(f.reasons, reasonFor(&in, i))
	}
}

// values encodes the values of a flag that is on.
func (f *flag) values(in *filters.Filters, k kind, payloads bool) {
	payload := in.Payloads[payloadTrue]
	switch {
	case len(in.Variants) > 0: // a multivariate flag without a variant has no value of its type
		f.on = f.value("true", "", payload)
	case payloads:
		f.on = f.value("true", string(appendPayload(nil, k, payload)), "")
	default:
		f.on = f.value("true", "true", payload)
	}
	for _, v := range in.Variants {
		value, rest := string(appendText(nil, v.Key)), in.Payloads[v.Key]
		if payloads {
			value, rest = string(appendPayload(nil, k, rest)), ""
		}
		f.variants = append(f.variants, named{v.Key, f.value(v.Key, value, rest)})
	}
}

// value encodes a success after its reason: variant, value and the begin of the
// metadata. No value stands for the default of the code. A payload that is not
// the value is a text of the metadata.
func (f *flag) value(variant, value, payload string) string {
	out := append([]byte(`","variant":`), string(appendText(nil, variant))...)
	if value != "" {
		out = append(append(out, `,"value":`...), value...)
	}
	out = append(out, f.metadata...)
	if payload != "" {
		out = appendText(append(out, `,"payload":`...), payload)
	}
	return string(out)
}

// reasonFor returns the reason of a match of the i-th condition set. A flag whose
// first set includes everyone with one value is static: no attribute of a context
// can change it.
func reasonFor(in *filters.Filters, i int) reason {
	set := &in.Groups[i]
	switch {
	case set.Rollout != nil && *set.Rollout < 100, splits(in, set):
		return reasonSplit
	case i > 0, len(set.Properties) > 0, in.Enrollment, len(in.SuperGroups) > 0, in.Holdout != nil:
		return reasonTargeting
	case set.AggregationSet && set.Aggregation != nil, !set.AggregationSet && in.Aggregation != nil:
		return reasonTargeting
	}
	return reasonStatic
}

// splits reports whether those who match a set get different variants.
func splits(in *filters.Filters, set *filters.ConditionSet) bool {
	if len(in.Variants) == 0 {
		return false
	}
	for _, v := range in.Variants {
		if v.Key == set.Variant || v.Rollout >= 100 {
			return false
		}
	}
	return true
}

// append appends the result of the flag.
func (f *flag) append(dst []byte, d *eval.Decision) []byte {
	if d.Failed != eval.CauseNone {
		x := failureOf(d.Failed)
		return appendFailure(append(dst, f.failure...), x.code, x.details)
	}
	dst = append(dst, f.head...)
	dst = append(dst, f.reasonOf(d)...)
	switch {
	case d.Reason == eval.ReasonHoldout:
		dst = append(dst, f.value(d.Variant, f.offValue, "")...)
	case d.Reason == eval.ReasonDisabled:
		dst = append(dst, f.disabled...)
	case !d.On:
		dst = append(dst, f.off...)
	default:
		dst = append(dst, f.onText(d.Variant)...)
	}
	dst = append(dst, `,"reasonCode":"`...)
	dst = append(dst, d.Reason.Code()...)
	dst = append(dst, '"')
	if d.Condition >= 0 {
		dst = strconv.AppendInt(append(dst, `,"conditionIndex":`...), int64(d.Condition), 10)
	}
	return append(dst, `}}`...)
}

func (f *flag) onText(variant string) string {
	if variant != "" {
		for i := range f.variants {
			if f.variants[i].key == variant {
				return f.variants[i].text
			}
		}
	}
	return f.on
}

// reasonOf returns the reason of the protocol for a decision.
func (f *flag) reasonOf(d *eval.Decision) reason {
	switch d.Reason {
	case eval.ReasonDisabled:
		return reasonDisabled
	case eval.ReasonConditionMatch:
		if d.Condition >= 0 && d.Condition < len(f.reasons) {
			return f.reasons[d.Condition]
		}
		return reasonTargeting
	case eval.ReasonOutOfRollout, eval.ReasonHoldout:
		return reasonSplit
	case eval.ReasonEnrolment:
		return reasonTargeting
	default:
		if f.empty {
			return reasonStatic
		}
		return reasonUnknown
	}
}

// appendFailure completes a failure that ends before its code.
func appendFailure(dst []byte, code, details string) []byte {
	dst = append(dst, code...)
	dst = append(dst, `","errorDetails":`...)
	return append(appendText(dst, details), '}')
}
