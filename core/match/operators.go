package match

import (
	"time"

	"github.com/guidonhq/guidon/core/match/search"
)

// test reports whether a present value passes. A filter has one test.
type test func(v *Value, now time.Time) bool

// row is one operator.
type row struct {
	missing Result // for an absent property
	values  Values
	form    Form
	// compile makes a test of a filter value. The error explains to the author
	// of the filter what is wrong with the value. A nil test passes nothing.
	compile func(o operand) (test, error)
}

// Values tells how an operator reads the value of a filter.
type Values uint8

// The ways to read the value of a filter. An operator that compares with one
// value (AnyOf, AllOf) has one test per value where a caller accepts lists.
const (
	WholeValue Values = iota // the whole value; a list is one operand
	NoValue                  // no value
	AnyOf                    // one value; of a list, one value must pass
	AllOf                    // one value; of a list, all values must pass
)

// Form tells what kind of text an operator compares with.
type Form uint8

// The forms of a filter value.
const (
	AnyForm     Form = iota
	PatternForm      // a regular expression in RE2 syntax
	VersionForm      // a version such as 1.2.3, as a string or a number
	DateForm         // a date, or how long ago
)

// table holds all built-in operators, one row each.
var table = map[string]row{
	"exact":               {False, WholeValue, AnyForm, compileExact},
	"is_not":              {True, WholeValue, AnyForm, negate(compileExact)},
	"is_set":              {False, NoValue, AnyForm, compilePresent},
	"is_not_set":          {True, NoValue, AnyForm, negate(compilePresent)},
	"icontains":           {False, AnyOf, AnyForm, compileText(search.Contains)},
	"not_icontains":       {True, AllOf, AnyForm, negate(compileText(search.Contains))},
	"icontains_multi":     {False, WholeValue, AnyForm, compileAny(search.Contains)},
	"not_icontains_multi": {True, WholeValue, AnyForm, negate(compileAny(search.Contains))},
	"starts_with":         {False, AnyOf, AnyForm, compileText(search.HasPrefix)},
	"not_starts_with":     {True, AllOf, AnyForm, negate(compileText(search.HasPrefix))},
	"ends_with":           {False, AnyOf, AnyForm, compileText(search.HasSuffix)},
	"not_ends_with":       {True, AllOf, AnyForm, negate(compileText(search.HasSuffix))},
	"regex":               {False, AnyOf, PatternForm, compileRegex(true)},
	"not_regex":           {True, AllOf, PatternForm, compileRegex(false)},
	"gt":                  {False, WholeValue, AnyForm, compileOrder(func(c int) bool { return c > 0 })},
	"gte":                 {False, WholeValue, AnyForm, compileOrder(func(c int) bool { return c >= 0 })},
	"lt":                  {False, WholeValue, AnyForm, compileOrder(func(c int) bool { return c < 0 })},
	"lte":                 {False, WholeValue, AnyForm, compileOrder(func(c int) bool { return c <= 0 })},
	"between":             {False, WholeValue, AnyForm, compileBetween(true)},
	"not_between":         {True, WholeValue, AnyForm, compileBetween(false)},
	"is_date_before":      {False, AnyOf, DateForm, compileDate(time.Time.Before)},
	"is_date_after":       {False, AnyOf, DateForm, compileDate(time.Time.After)},
	"is_date_exact":       {False, AnyOf, DateForm, compileDate(time.Time.Equal)},
	"semver_eq":           {False, AnyOf, VersionForm, compileVersion(func(c int) bool { return c == 0 })},
	"semver_neq":          {False, AllOf, VersionForm, compileVersion(func(c int) bool { return c != 0 })},
	"semver_gt":           {False, AnyOf, VersionForm, compileVersion(func(c int) bool { return c > 0 })},
	"semver_gte":          {False, AnyOf, VersionForm, compileVersion(func(c int) bool { return c >= 0 })},
	"semver_lt":           {False, AnyOf, VersionForm, compileVersion(func(c int) bool { return c < 0 })},
	"semver_lte":          {False, AnyOf, VersionForm, compileVersion(func(c int) bool { return c <= 0 })},
	"semver_tilde":        {False, AnyOf, VersionForm, compileRange(tilde)},
	"semver_caret":        {False, AnyOf, VersionForm, compileRange(caret)},
	"semver_wildcard":     {False, AnyOf, VersionForm, compileRange(wildcard)},
}

// aliases are further names of operators in filters.
var aliases = map[string]string{"": "exact", "min": "gte", "max": "lte"}

// Canonical resolves the alias of an operator ("" is exact, min is gte, max is
// lte). It returns the operator's own name and whether it is built in.
func Canonical(operator string) (string, bool) {
	if name, ok := aliases[operator]; ok {
		return name, true
	}
	_, ok := table[operator]
	return operator, ok
}

// ValuesOf tells how a built-in operator reads the value of a filter. Any other
// operator reads the whole value.
func ValuesOf(operator string) Values {
	name, _ := Canonical(operator)
	return table[name].values
}

// FormOf returns the form of the values that a built-in operator compares with.
// Any other operator accepts any form.
func FormOf(operator string) Form {
	name, _ := Canonical(operator)
	return table[name].form
}

// Operators returns the names of all built-in operators in no order.
func Operators() []string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	return names
}

func never(*Value, time.Time) bool { return false }

// negate compiles the opposite of another operator.
func negate(compile func(operand) (test, error)) func(operand) (test, error) {
	return func(o operand) (test, error) {
		yes, err := compile(o)
		return func(v *Value, now time.Time) bool { return !yes(v, now) }, err
	}
}

func compilePresent(operand) (test, error) {
	return func(*Value, time.Time) bool { return true }, nil
}
