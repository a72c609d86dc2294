package match

import (
	"time"

	"github.com/guidonhq/guidon/core/match/pattern"
	"github.com/guidonhq/guidon/core/match/search"
)

// compileText searches the value's text for a text, ignoring the case of ASCII
// letters. found receives a lower-case needle.
func compileText(found func(s, needle string) bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		needle := search.LowerASCII(loose(&o.value))
		return func(v *Value, _ time.Time) bool { return found(loose(v), needle) }, o.scalar()
	}
}

// compileAny passes if one of several texts is found.
func compileAny(found func(s, needle string) bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		var needles []string
		for _, item := range o.items() {
			needles = append(needles, search.LowerASCII(loose(&item)))
		}
		var err error
		if o.value.kind != Array {
			err = o.problem("invalid_value", "it must be a list")
		}
		return func(v *Value, _ time.Time) bool {
			s := loose(v)
			for _, needle := range needles {
				if found(s, needle) {
					return true
				}
			}
			return false
		}, err
	}
}

// compileRegex searches the value's text for a pattern; see package pattern. An invalid
// or too large pattern passes nothing, negated or not.
func compileRegex(want bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		re, size, err := pattern.Compile(loose(&o.value), o.limits.Expression)
		if err != nil {
			return nil, err
		}
		*o.price = size
		return func(v *Value, _ time.Time) bool { return re.MatchString(loose(v)) == want }, o.scalar()
	}
}
