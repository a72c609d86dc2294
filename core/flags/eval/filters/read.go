package filters

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// fields is a JSON object by name; of equal names the last one counts.
type fields map[string]*fastjson.Value

// readObject parses raw, which must be one JSON object.
func readObject(raw []byte) (fields, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not valid JSON")
	}
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return nil, err
	}
	f, ok := objectOf(v)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return f, nil
}

func objectOf(v *fastjson.Value) (fields, bool) {
	o, err := v.Object()
	if err != nil {
		return nil, false
	}
	f := make(fields, o.Len())
	o.Visit(func(name []byte, v *fastjson.Value) { f[string(name)] = v })
	return f, true
}

// given returns the value of name, or nil when it is absent or null.
func (f fields) given(name string) *fastjson.Value {
	if v := f[name]; v != nil && v.Type() != fastjson.TypeNull {
		return v
	}
	return nil
}

// reader reads filters and keeps the first error.
type reader struct{ err *Error }

func (r *reader) addError(path, must string) {
	if r.err == nil {
		r.err = &Error{Code: "invalid_input", Detail: path + " " + must}
	}
}

func (r *reader) filters(f *Filters, root fields) {
	if groups := root["groups"]; groups == nil {
		f.Groups = []ConditionSet{{
			Properties: r.properties("properties", root.given("properties")),
			Rollout:    r.number("rollout_percentage", root.given("rollout_percentage")),
		}}
	} else {
		f.Groups = r.sets("groups", root.given("groups"))
	}
	f.SuperGroups = r.sets("super_groups", root.given("super_groups"))
	f.Aggregation = r.index("aggregation_group_type_index", root.given("aggregation_group_type_index"))
	f.Enrollment = isTrue(root["feature_enrollment"])
	f.EarlyExit = isTrue(root["early_exit"])
	f.Variants = r.variants(root.given("multivariate"))
	f.Payloads = r.payloads(root.given("payloads"))
	f.Holdout = r.holdout(root)
}

func isTrue(v *fastjson.Value) bool { return v != nil && v.Type() == fastjson.TypeTrue }

func (r *reader) list(path string, v *fastjson.Value) []*fastjson.Value {
	if v == nil {
		return nil
	}
	list, err := v.Array()
	if err != nil {
		r.addError(path, "must be a list")
	}
	return list
}

func (r *reader) object(path string, v *fastjson.Value) fields {
	f, ok := objectOf(v)
	if !ok {
		r.addError(path, "must be an object")
	}
	return f
}

func (r *reader) sets(path string, v *fastjson.Value) []ConditionSet {
	var out []ConditionSet
	for i, item := range r.list(path, v) {
		out = append(out, r.set(at(path, i), item))
	}
	return out
}

func (r *reader) set(path string, v *fastjson.Value) ConditionSet {
	f := r.object(path, v)
	c := ConditionSet{
		Properties:  r.properties(path+".properties", f.given("properties")),
		Rollout:     r.number(path+".rollout_percentage", f.given("rollout_percentage")),
		Variant:     r.text(path+".variant", f.given("variant")),
		Description: looseText(f.given("description")),
	}
	if own, ok := f["aggregation_group_type_index"]; ok && own != nil {
		c.AggregationSet = true
		c.Aggregation = r.index(path+".aggregation_group_type_index", f.given("aggregation_group_type_index"))
	}
	return c
}

func (r *reader) properties(path string, v *fastjson.Value) []Property {
	var out []Property
	for i, item := range r.list(path, v) {
		out = append(out, r.property(at(path, i), item))
	}
	return out
}

func (r *reader) property(path string, v *fastjson.Value) Property {
	f := r.object(path, v)
	p := Property{
		Key:            looseText(f.given("key")),
		Type:           r.text(path+".type", f.given("type")),
		Operator:       r.text(path+".operator", f.given("operator")),
		GroupTypeIndex: r.index(path+".group_type_index", f.given("group_type_index")),
		Negation:       isTrue(f["negation"]),
	}
	if value := f["value"]; value != nil {
		p.Value = match.AppendJSON(nil, value)
	}
	return p
}

func (r *reader) variants(v *fastjson.Value) []Variant {
	if v == nil {
		return nil
	}
	var out []Variant
	for i, item := range r.list("multivariate.variants", r.object("multivariate", v).given("variants")) {
		path := at("multivariate.variants", i)
		f := r.object(path, item)
		rollout := r.number(path+".rollout_percentage", f.given("rollout_percentage"))
		if rollout == nil {
			r.addError(path+".rollout_percentage", "must be a number")
			continue
		}
		out = append(out, Variant{Key: r.text(path+".key", f.given("key")), Name: looseText(f.given("name")), Rollout: *rollout})
	}
	return out
}

// payloads reads each payload as the JSON text that clients get. Empty payloads
// (null, "", 0, false, {}) are left out.
func (r *reader) payloads(v *fastjson.Value) map[string]string {
	if v == nil {
		return nil
	}
	out := map[string]string{}
	for name, item := range r.object("payloads", v) {
		text := string(match.AppendJSON(nil, item))
		if item.Type() == fastjson.TypeString {
			text = string(item.GetStringBytes())
		} else if text == "null" || text == "0" || text == "false" || text == "{}" {
			continue
		}
		if text != "" {
			out[name] = text
		}
	}
	return out
}

func (r *reader) holdout(root fields) *Holdout {
	if v := root.given("holdout"); v != nil {
		f := r.object("holdout", v)
		share := r.number("holdout.exclusion_percentage", f.given("exclusion_percentage"))
		if id := looseText(f.given("id")); id != "" && share != nil {
			return &Holdout{ID: id, Exclusion: math.Min(math.Max(*share, 0), 100)}
		}
		return nil
	}
	older := r.sets("holdout_groups", root.given("holdout_groups"))
	const prefix = "holdout-"
	if len(older) == 0 || older[0].Rollout == nil || len(older[0].Variant) <= len(prefix) || older[0].Variant[:len(prefix)] != prefix {
		return nil
	}
	return &Holdout{ID: older[0].Variant[len(prefix):], Exclusion: *older[0].Rollout}
}

func (r *reader) text(path string, v *fastjson.Value) string {
	if v == nil {
		return ""
	}
	s, err := v.StringBytes()
	if err != nil {
		r.addError(path, "must be a string")
	}
	return string(s)
}

func (r *reader) number(path string, v *fastjson.Value) *float64 {
	if v == nil {
		return nil
	}
	text := v.MarshalTo(nil)
	n, err := strconv.ParseFloat(string(text), 64)
	if v.Type() != fastjson.TypeNumber || err != nil {
		r.addError(path, "must be a number")
		return nil
	}
	return &n
}

func (r *reader) index(path string, v *fastjson.Value) *int {
	n := r.number(path, v)
	if n == nil {
		return nil
	}
	if *n != math.Trunc(*n) || *n < 0 || *n > math.MaxInt32 {
		r.addError(path, "must be the index of a group type")
		return nil
	}
	i := int(*n)
	return &i
}

// looseText returns the text of an identifier or a label: the characters of a
// string, anything else as JSON, "" for nil.
func looseText(v *fastjson.Value) string {
	if v == nil {
		return ""
	}
	if v.Type() == fastjson.TypeString {
		return string(v.GetStringBytes())
	}
	return string(match.AppendJSON(nil, v))
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
