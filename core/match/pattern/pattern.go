// Package pattern compiles the regular expressions of filters. Their syntax is that
// of RE2, and the classes \w \d \s, their negations and the word boundary are those
// of Unicode, as in the flags service of PostHog and its clients: \w matches é, and
// \d an Arabic digit. The classes of Go's regexp are ASCII only.
//
// A pattern with such a class has two programs. One has ASCII classes and searches
// texts that are ASCII, which are nearly all: for these both mean the same. The
// other has the classes of Unicode. Go has no word boundary of Unicode; the program
// for a pattern with one searches a copy of the text in which each word character
// beyond ASCII is enclosed in an ASCII letter, see boundary.go.
//
// The size of a pattern covers both programs, so that limits and budgets hold.
package pattern

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match/search"
	"github.com/guidonhq/guidon/core/text"
)

// Pattern is a compiled regular expression. It is immutable and safe for parallel
// use.
type Pattern struct {
	ascii    *regexp.Regexp // for texts that are ASCII
	unicode  *regexp.Regexp // for other texts; nil: the same
	enclosed bool           // unicode searches a text with enclosed word characters
}

// Check returns the size of a pattern, and an Invalid fault for one that is larger
// than most. It compiles nothing. An invalid pattern has no size.
func Check(pattern string, most int64) (search.Program, error) {
	size, err := search.CheckExpression(pattern, most)
	memory, classes := classMemory(pattern)
	if err != nil || !classes {
		return size, err
	}
	if memory > most {
		return size, tooLarge(memory, most)
	}
	t := translate(pattern)
	wide, err := search.Size(t.unicode)
	if err != nil {
		return size, nil //nolint:nilerr // the compilation reports the error
	}
	if t.boundary {
		wide.Memory = enclosedNodes*wide.Memory + enclosedExtra
		wide.Insts = enclosedRunes * (enclosedNodes*wide.Insts + enclosedExtra)
	}
	size.Insts = max(size.Insts, wide.Insts)
	size.Memory += wide.Memory
	if size.Memory > most {
		return size, tooLarge(size.Memory, most)
	}
	return size, nil
}

func tooLarge(size, most int64) error {
	return fault.Fieldf("value", search.CodeTooLarge,
		"The regular expression is too large: with the characters of all languages it compiles to about %d instructions, at most %d are allowed. Use fewer classes such as \\w, or repeat less.", size, most)
}

// Compile compiles a pattern of at most a size, and returns the steps of a search
// per character. It compiles nothing for a larger pattern. Errors are Invalid
// faults for the author of the pattern.
func Compile(pattern string, most int64) (*Pattern, int64, error) {
	size, err := Check(pattern, most)
	if err != nil {
		return nil, 0, err
	}
	if _, classes := classMemory(pattern); !classes {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, 0, invalid(err)
		}
		if _, literal := re.LiteralPrefix(); literal {
			return &Pattern{ascii: re}, 1, nil // a search for a text
		}
		return &Pattern{ascii: re}, size.Insts, nil
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, 0, invalid(err) // the message names the text of the author
	}
	t := translate(pattern)
	p := &Pattern{enclosed: t.boundary}
	if p.ascii, err = regexp.Compile(t.ascii); err == nil {
		p.unicode, err = t.compile()
	}
	if err != nil {
		return nil, 0, invalid(err)
	}
	return p, size.Insts, nil
}

// MatchString reports whether the pattern matches a part of s.
func (p *Pattern) MatchString(s string) bool {
	switch {
	case p.unicode == nil || isASCII(s):
		return p.ascii.MatchString(s)
	case p.enclosed:
		return p.unicode.MatchString(enclose(s))
	}
	return p.unicode.MatchString(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// maxQuoted is how many bytes of an error are shown.
const maxQuoted = 160

func invalid(err error) error {
	hint := ""
	for _, mark := range []string{"(?=", "(?!", "(?<=", "(?<!", "invalid escape sequence"} {
		if strings.Contains(err.Error(), mark) {
			hint = "; look-ahead, look-behind and back-references are not available (RE2 syntax)"
		}
	}
	return fault.Fieldf("value", "invalid_input", "invalid regex pattern: %s%s",
		text.Ellipsis(strings.TrimPrefix(err.Error(), "error parsing regexp: "), maxQuoted), hint)
}
