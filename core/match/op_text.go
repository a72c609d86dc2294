package match

import (
	"regexp"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match/search"
	"github.com/guidonhq/guidon/core/text"
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

// compileRegex searches the value's text for a pattern in RE2 syntax. An invalid
// or too large pattern passes nothing, negated or not.
func compileRegex(want bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		re, size, err := compilePattern(loose(&o.value), o.limits.Expression)
		if err != nil {
			return nil, err
		}
		*o.price = size
		return func(v *Value, _ time.Time) bool { return re.MatchString(loose(v)) == want }, o.scalar()
	}
}

// compilePattern compiles a pattern of at most a size, and returns the size of
// its program. It compiles nothing for a larger one.
func compilePattern(pattern string, most int64) (*regexp.Regexp, int64, error) {
	size, err := search.CheckExpression(pattern, most)
	if err != nil {
		return nil, 0, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, badPattern(err)
	}
	if _, literal := re.LiteralPrefix(); literal {
		return re, 1, nil // a search for a text
	}
	return re, size.Insts, nil
}

func badPattern(err error) error {
	hint := ""
	for _, mark := range []string{"(?=", "(?!", "(?<=", "(?<!", "invalid escape sequence"} {
		if strings.Contains(err.Error(), mark) {
			hint = "; look-ahead, look-behind and back-references are not available (RE2 syntax)"
		}
	}
	return fault.Fieldf("value", "invalid_input", "invalid regex pattern: %s%s",
		text.Ellipsis(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 2*maxQuoted), hint)
}
