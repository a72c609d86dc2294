package match

import "time"

// test tells whether a present value passes. It is made once per filter.
type test func(v *Value, now time.Time) bool

// row is one operator: what a property that is not there gives, and how a
// filter value becomes a test. compile always returns a usable test; its
// error says what is wrong with the filter value, for whoever writes it.
type row struct {
	missing Result
	compile func(o operand) (test, error)
}

// table is all the operators there are, one row each.
var table = map[string]row{
	"exact":               {False, compileExact},
	"is_not":              {True, negate(compileExact)},
	"is_set":              {False, compilePresent},
	"is_not_set":          {True, negate(compilePresent)},
	"icontains":           {False, compileText(contains)},
	"not_icontains":       {True, negate(compileText(contains))},
	"icontains_multi":     {False, compileAny(contains)},
	"not_icontains_multi": {True, negate(compileAny(contains))},
	"starts_with":         {False, compileText(hasPrefix)},
	"not_starts_with":     {True, negate(compileText(hasPrefix))},
	"ends_with":           {False, compileText(hasSuffix)},
	"not_ends_with":       {True, negate(compileText(hasSuffix))},
	"regex":               {False, compileRegex(true)},
	"not_regex":           {True, compileRegex(false)},
	"gt":                  {False, compileOrder(func(c int) bool { return c > 0 })},
	"gte":                 {False, compileOrder(func(c int) bool { return c >= 0 })},
	"lt":                  {False, compileOrder(func(c int) bool { return c < 0 })},
	"lte":                 {False, compileOrder(func(c int) bool { return c <= 0 })},
	"between":             {False, compileBetween(true)},
	"not_between":         {True, compileBetween(false)},
	"is_date_before":      {False, compileDate(time.Time.Before)},
	"is_date_after":       {False, compileDate(time.Time.After)},
	"is_date_exact":       {False, compileDate(time.Time.Equal)},
	"semver_eq":           {False, compileVersion(func(c int) bool { return c == 0 })},
	"semver_neq":          {False, compileVersion(func(c int) bool { return c != 0 })},
	"semver_gt":           {False, compileVersion(func(c int) bool { return c > 0 })},
	"semver_gte":          {False, compileVersion(func(c int) bool { return c >= 0 })},
	"semver_lt":           {False, compileVersion(func(c int) bool { return c < 0 })},
	"semver_lte":          {False, compileVersion(func(c int) bool { return c <= 0 })},
	"semver_tilde":        {False, compileRange(tilde)},
	"semver_caret":        {False, compileRange(caret)},
	"semver_wildcard":     {False, compileRange(wildcard)},
}

// aliases are other names under which filters may carry an operator.
var aliases = map[string]string{"": "exact", "min": "gte", "max": "lte"}

// Canonical returns the operator's own name for a name that a filter may
// carry ("" is exact, min is gte, max is lte), and whether it is built in.
func Canonical(operator string) (string, bool) {
	if name, ok := aliases[operator]; ok {
		return name, true
	}
	_, ok := table[operator]
	return operator, ok
}

// Operators returns the names of all built-in operators, in no order.
func Operators() []string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	return names
}

func never(*Value, time.Time) bool { return false }

// negate is for operators that pass exactly when another one does not.
func negate(compile func(operand) (test, error)) func(operand) (test, error) {
	return func(o operand) (test, error) {
		yes, err := compile(o)
		return func(v *Value, now time.Time) bool { return !yes(v, now) }, err
	}
}

func compilePresent(operand) (test, error) {
	return func(*Value, time.Time) bool { return true }, nil
}
