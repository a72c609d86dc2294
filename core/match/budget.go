package match

import (
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match/pattern"
	"github.com/guidonhq/guidon/core/match/search"
)

// Limits bounds the size of regular expressions; see search.
type Limits = search.Limits

// Budget bounds the work of comparing texts; see search.
type Budget = search.Budget

// Names of search that callers of this package need.
const (
	NotRefused     = search.NotRefused
	TextTooLong    = search.TextTooLong
	BudgetSpent    = search.BudgetSpent
	DefaultBudget  = search.DefaultBudget
	MaxPatternText = search.MaxPatternText
	CodeTooLarge   = search.CodeTooLarge
)

// DefaultLimits returns the default limits of regular expressions.
func DefaultLimits() Limits { return search.DefaultLimits() }

// CheckPattern returns the size of the regular expression that Compile makes of
// a filter value, 0 for an operator without. It fails with an Invalid fault for one that is larger than
// l.Expression. It compiles nothing: its time and memory are those of reading the
// value. An invalid pattern has no size.
func CheckPattern(l Limits, operator string, value []byte) (int64, error) {
	if FormOf(operator) != PatternForm || len(value) == 0 {
		return 0, nil
	}
	v, err := fastjson.ParseBytes(value)
	if err != nil {
		return 0, nil //nolint:nilerr // the compilation reports the error
	}
	whole, _ := FromJSON(v, nil)
	size, err := pattern.Check(loose(&whole), l.Expression)
	return size.Memory, err
}

// containerPrice is the price per byte of a list or an object, which is parsed.
const containerPrice = 16

// admitted spends the price of matching v with a built-in operator.
func (f *Filter) admitted(b *Budget, v *Value) bool {
	if f.price == 0 {
		return true
	}
	if v.kind >= Array && !b.Spend(containerPrice*int64(len(v.text))) {
		return false
	}
	if f.pattern {
		return b.SpendPattern(f.price, len(v.text))
	}
	return b.Spend(f.price * int64(len(v.text)))
}

// perByte returns the number of comparisons per byte of text of a built-in
// operator, except for regular expressions.
func (o operand) perByte() int64 {
	switch o.operator {
	case "is_set", "is_not_set":
		return 0
	case "icontains_multi", "not_icontains_multi":
		return max(1, int64(len(o.items())))
	case "exact", "is_not":
		if n := len(o.items()); n <= manyItems {
			return max(1, int64(n))
		}
	}
	return 1
}
