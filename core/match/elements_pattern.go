package match

import (
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match/pattern"
	"github.com/guidonhq/guidon/core/match/search"
)

// Matching is a way to compare a text in a step.
type Matching string

// Exact compares for equality. Contains is LIKE %text% of SQL, where % stands
// for any characters and _ for one; a backslash makes them literal. Regex
// searches for a pattern in RE2 syntax.
const (
	Exact    Matching = "exact"
	Contains Matching = "contains"
	Regex    Matching = "regex"
)

// ParseMatching reads the name of a Matching; an empty name returns other. An
// unknown name is an Invalid fault.
func ParseMatching(name string, other Matching) (Matching, error) {
	switch way := Matching(name); way {
	case Exact, Contains, Regex:
		return way, nil
	case "":
		return other, nil
	}
	return other, fault.Newf(fault.Invalid, "invalid_choice", "%q is not a valid choice.", name)
}

// Pattern is a compiled text to compare with. It is immutable and safe for
// parallel use. Matching takes linear time, for a pattern with pieces between
// underscores and for a regular expression times their size; Spend bounds it. A
// nil Pattern matches nothing.
type Pattern struct {
	way   Matching
	text  string
	re    *pattern.Pattern
	like  *search.Like
	price int64 // per byte of text; of a regular expression the size
}

// CompilePattern prepares a text. With fold, Contains ignores case; Exact and
// Regex never do. An invalid regular expression, or one that is larger than a
// definition may have (DefaultLimits), returns nil and an Invalid fault.
func CompilePattern(text string, way Matching, fold bool) (*Pattern, error) {
	p := &Pattern{way: way, text: text, price: 1}
	switch way {
	case Regex:
		var err error
		if p.re, p.price, err = pattern.Compile(text, DefaultLimits().Definition); err != nil {
			return nil, err
		}
	case Contains:
		p.like = search.NewLike(text, fold)
		p.price = p.like.Price()
	default:
	}
	return p, nil
}

// Match reports whether s passes.
func (p *Pattern) Match(s string) bool {
	if p == nil {
		return false
	}
	switch p.way {
	case Regex:
		return p.re.MatchString(s)
	case Contains:
		return p.like.Match(s)
	default:
		return s == p.text
	}
}

// Spend takes the work of matching a text of n bytes from b, and reports whether
// it was there. A nil Budget has no end.
func (p *Pattern) Spend(b *Budget, n int) bool {
	switch {
	case p == nil || b == nil:
		return true
	case p.way == Regex:
		return b.SpendPattern(p.price, n)
	}
	return b.Spend(p.price * int64(n))
}
