package match

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
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
// parallel use, and matching allocates nothing. A nil Pattern matches nothing.
type Pattern struct {
	way   Matching
	text  string
	re    *regexp.Regexp
	parts []like
	fold  bool
}

// like is the text between two percent signs. Its runes are lower-case if the
// pattern ignores case; anyRune stands for any rune.
type like struct {
	text  string // for a direct search, else empty
	runes []rune
}

const anyRune = -1

// CompilePattern prepares a text. With fold, Contains ignores case; Exact and
// Regex never do. An invalid regular expression returns nil and an Invalid
// fault.
func CompilePattern(text string, way Matching, fold bool) (*Pattern, error) {
	p := &Pattern{way: way, text: text, fold: fold}
	switch way {
	case Regex:
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, operand{}.badPattern(err)
		}
		p.re = re
	case Contains:
		p.parts = compileLike(text, fold)
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
		for i := range p.parts {
			end := p.parts[i].find(s, p.fold)
			if end < 0 {
				return false
			}
			s = s[end:]
		}
		return true
	default:
		return s == p.text
	}
}

func compileLike(text string, fold bool) []like {
	var parts []like
	var part like
	literal := true
	flush := func() {
		if len(part.runes) > 0 {
			if literal && !fold {
				part.text = string(part.runes)
			}
			parts = append(parts, part)
		}
		part, literal = like{}, true
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r == '%':
			flush()
			continue
		case r == '_':
			r, literal = anyRune, false
		case r == '\\' && i < len(text) && strings.IndexByte(`%_\`, text[i]) >= 0:
			r = rune(text[i])
			i++
		}
		if fold && r != anyRune {
			r = unicode.ToLower(r)
		}
		part.runes = append(part.runes, r)
	}
	flush()
	return slices.Clip(parts)
}

// find returns the offset after the first match of the part, or -1.
func (l *like) find(s string, fold bool) int {
	if l.text != "" {
		at := strings.Index(s, l.text)
		if at < 0 {
			return -1
		}
		return at + len(l.text)
	}
	for at := 0; at < len(s); {
		if end := l.fits(s[at:], fold); end >= 0 {
			return at + end
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
	}
	return -1
}

// fits returns the length of the match at the start of s, or -1.
func (l *like) fits(s string, fold bool) int {
	i := 0
	for _, want := range l.runes {
		if i == len(s) {
			return -1
		}
		got, n := rune(s[i]), 1
		if got >= utf8.RuneSelf {
			got, n = utf8.DecodeRuneInString(s[i:])
		}
		if want != anyRune && got != want && (!fold || unicode.ToLower(got) != want) {
			return -1
		}
		i += n
	}
	return i
}
