package match

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/text"
)

// Limits on the values of one filter, and on values that each become a test.
const (
	maxValues = 10_000
	maxTests  = 500
)

// maxQuoted is how many bytes of a wrong value an error quotes.
const maxQuoted = 80

// maxGroupIndex bounds the index of a group type.
const maxGroupIndex = 999

// compileFilter parses and compiles one property filter. Errors are Invalid
// faults at the field of the filter.
func compileFilter(raw json.RawMessage, opts CompileOptions) (filter, error) {
	f := filter{}
	v, err := fastjson.ParseBytes(raw)
	if err != nil || v.Type() != fastjson.TypeObject {
		return f, fault.Field("", "invalid_input", "A property filter must be an object with key, value, operator and type.")
	}
	in := filterFields{}
	v.GetObject().Visit(func(name []byte, v *fastjson.Value) { in[string(name)] = v })
	if f.source, err = in.readSource(); err != nil {
		return f, err
	}
	if f.operator, err = in.readText("operator", ""); err != nil {
		return f, err
	}
	if value := in["value"]; value != nil {
		f.value = jsontext.AppendJSON(nil, value)
		if n := len(value.GetArray()); n > maxValues {
			return f, fault.Fieldf("value", "max_length", "A filter may list at most %d values, got %d.", maxValues, n)
		}
	}
	if f.source == FromCohort {
		return f, f.compileCohort(in["value"], opts)
	}
	return f, f.compileProperty(in, opts)
}

// filterFields are the fields of a filter; of several with one name the last.
type filterFields map[string]*fastjson.Value

// readText reads a string field; null is like an absent field.
func (m filterFields) readText(name, otherwise string) (string, error) {
	v := m[name]
	switch {
	case v == nil || v.Type() == fastjson.TypeNull:
		return otherwise, nil
	case v.Type() != fastjson.TypeString:
		return "", fault.Field(name, "invalid", "Not a valid string.")
	}
	return string(v.GetStringBytes()), nil
}

func (m filterFields) readSource() (Source, error) {
	name, err := m.readText("type", "")
	switch s := Source(name); s {
	case "":
		return FromEvent, err
	case FromEvent, FromPerson, FromGroup, FromElement, FromCohort, FromFeature:
		return s, nil
	}
	return "", fault.Fieldf("type", "invalid_choice",
		"%q is not a valid choice. A filter of an action reads an event, person, group, element, cohort or feature.", text.Ellipsis(name, maxQuoted))
}

func (f *filter) compileProperty(in filterFields, opts CompileOptions) (err error) {
	if f.key, err = in.readText("key", ""); err != nil {
		return err
	}
	if f.key == "" {
		return fault.Field("key", "required", "A property filter must name the property it reads.")
	}
	switch f.source {
	case FromGroup:
		if f.group, err = in.groupIndex(); err != nil {
			return err
		}
	case FromFeature:
		f.key = "$feature/" + strings.TrimPrefix(f.key, "$feature/")
	default:
	}
	switch f.operator {
	case "in":
		f.operator = "exact"
	case "not_in":
		f.operator = "is_not"
	}
	return f.compileTests(match.Options{
		Location: opts.Location, Registry: opts.Operators, Limits: match.Limits{Expression: maxRegexProgram},
	})
}

func (m filterFields) groupIndex() (int, error) {
	v := m["group_type_index"]
	if v == nil || v.Type() == fastjson.TypeNull {
		return 0, fault.Field("group_type_index", "required", "A filter on a group must say which type of group, by its index.")
	}
	n, err := v.Int()
	if err != nil || n < 0 || n > maxGroupIndex {
		return 0, fault.Fieldf("group_type_index", "invalid", "The index of a group type must be a whole number from 0 to %d.", maxGroupIndex)
	}
	return n, nil
}

// compileTests makes one test, or one per value of a list.
func (f *filter) compileTests(opts match.Options) error {
	values, err := f.splitValues()
	if err != nil {
		return err
	}
	for _, value := range values {
		spec := match.Spec{Key: f.key, Operator: f.operator, Value: value}
		if err := f.addTest(spec, opts); err != nil {
			return fieldFault(err, "operator")
		}
	}
	return nil
}

// splitValues splits a list for an operator that compares with one value, and
// sets whether all values must pass.
func (f *filter) splitValues() ([][]byte, error) {
	reads := match.ValuesOf(f.operator)
	if reads != match.AnyOf && reads != match.AllOf || len(f.value) == 0 || f.value[0] != '[' {
		return [][]byte{f.value}, nil
	}
	f.matchAll = reads == match.AllOf
	list, err := fastjson.ParseBytes(f.value)
	if err != nil || len(list.GetArray()) == 0 {
		return nil, fault.Field("value", "invalid_value", "The list of values must not be empty.")
	}
	if n := len(list.GetArray()); n > maxTests {
		return nil, fault.Fieldf("value", "max_length", "A filter with this operator may list at most %d values, got %d.", maxTests, n)
	}
	var values [][]byte
	for _, item := range list.GetArray() {
		values = append(values, jsontext.AppendJSON(nil, item))
	}
	return values, nil
}

func (f *filter) addTest(spec match.Spec, opts match.Options) error {
	if f.source == FromElement {
		test, err := match.CompileElementFilter(spec, opts)
		if err != nil {
			return err
		}
		f.elementTests = append(f.elementTests, test)
		return fieldFault(test.Problem(), "value")
	}
	test, err := match.Compile(spec, opts)
	if err != nil {
		return err
	}
	f.tests = append(f.tests, test)
	return fieldFault(test.Problem(), "value")
}

// fieldFault makes an Invalid fault at a field of the filter from an error
// whose text may be shown. A fault that has a field keeps it.
func fieldFault(err error, field string) error {
	f := fault.From(err)
	switch {
	case err == nil:
		return nil
	case f == nil:
		return fault.Field(field, "invalid_value", err.Error())
	case f.Attr == "":
		return f.At(field)
	}
	return f
}

// compileCohort reads the ids of cohorts, or "all" for all persons.
func (f *filter) compileCohort(value *fastjson.Value, opts CompileOptions) error {
	f.key = "id"
	switch f.operator {
	case "", "exact", "in":
	case "not_in", "is_not":
		f.negate = true
	default:
		return fault.Fieldf("operator", "invalid_operator", "A filter on a cohort takes in and not_in, not %s.", text.Ellipsis(f.operator, maxQuoted))
	}
	if value == nil || value.Type() == fastjson.TypeNull {
		return fault.Field("value", "required", "A filter on a cohort must say which one, by its id.")
	}
	ids := []*fastjson.Value{value}
	if value.Type() == fastjson.TypeArray {
		ids = value.GetArray()
	}
	if len(ids) == 0 {
		return fault.Field("value", "invalid_value", "The list of cohorts must not be empty.")
	}
	for _, id := range ids {
		if err := f.addCohort(id, opts.Cohorts); err != nil {
			return err
		}
	}
	return nil
}

func (f *filter) addCohort(v *fastjson.Value, known Cohorts) error {
	name := string(jsontext.AppendJSON(nil, v))
	if v.Type() == fastjson.TypeString {
		name = string(v.GetStringBytes())
	}
	if name == "all" {
		f.allPersons = true
		return nil
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return fault.Fieldf("value", "invalid_value", "A cohort is named by its id, a whole number, or \"all\"; got %s.", text.Ellipsis(name, maxQuoted))
	}
	if known != nil && !known.HasCohort(id) {
		return fault.Fieldf("value", "does_not_exist", "There is no cohort %d in this project.", id)
	}
	if !slices.Contains(f.cohorts, id) {
		f.cohorts = append(f.cohorts, id)
	}
	return nil
}
