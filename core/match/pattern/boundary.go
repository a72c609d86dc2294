package pattern

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Go's regexp knows the word boundary between ASCII characters only. A pattern with
// a boundary therefore searches another text, in which each word character beyond
// ASCII stands between two markers: é becomes ZéZ. The markers are word characters
// of ASCII, so that the boundaries of Go are where those of Unicode are. The letter
// that is the marker is itself replaced by a stand-in between markers, so that a
// marker is never part of the text.
//
// The pattern is rewritten to match: a class becomes its members without the marker,
// or a member between markers. The search is anchored and skips whole units, so that
// no match begins between a marker and its character.
const (
	marker  = 'Z'
	standIn = unicode.MaxRune - 2 // of a private plane
)

// The sizes of a rewritten pattern, at most: a node becomes six instructions, and a
// character of the text three.
const (
	enclosedNodes = 6
	enclosedRunes = 3
	enclosedExtra = 16 // the prefix that skips
)

// enclose returns the text that a pattern with a boundary searches.
func enclose(s string) string {
	var b strings.Builder
	b.Grow(2 * len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == marker:
			b.WriteByte(marker)
			b.WriteRune(standIn)
			b.WriteByte(marker)
		case r >= utf8.RuneSelf && isWord(r):
			b.WriteByte(marker)
			b.WriteString(s[i : i+n])
			b.WriteByte(marker)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// skipUnits is the prefix of a rewritten pattern.
const skipUnits = `\A(?s:[^Z]|Z.Z)*?`

// rewriteEnclosed returns the text of a pattern for enclosed texts.
func rewriteEnclosed(re *syntax.Regexp) string {
	return skipUnits + "(?:" + rewriteNode(re).String() + ")"
}

// rewriteNode changes the nodes that match characters.
func rewriteNode(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpLiteral:
		return rewriteLiteral(re)
	case syntax.OpCharClass:
		return encloseClass(re.Rune)
	case syntax.OpAnyChar:
		return encloseClass([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return encloseClass([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	default:
		for i := range re.Sub {
			re.Sub[i] = rewriteNode(re.Sub[i])
		}
		return re
	}
}

func rewriteLiteral(re *syntax.Regexp) *syntax.Regexp {
	out := &syntax.Regexp{Op: syntax.OpConcat}
	for _, r := range re.Rune {
		members := []rune{r, r}
		if re.Flags&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				members = append(members, f, f)
			}
		}
		out.Sub = append(out.Sub, encloseClass(members))
	}
	return out
}

// encloseClass returns the node for a class, given as pairs of runes in any order.
func encloseClass(ranges []rune) *syntax.Regexp {
	bare := class(without(ranges, marker))
	inner := without(ranges, standIn)
	if contains(ranges, marker) {
		inner = append(inner, standIn, standIn)
	}
	letter := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{marker}}
	enclosed := &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{letter, class(inner), letter}}
	if bare.Op == syntax.OpNoMatch {
		return enclosed
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: []*syntax.Regexp{bare, enclosed}}
}

func class(ranges []rune) *syntax.Regexp {
	if len(ranges) == 0 {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: ranges}
}

// without returns the ranges without one rune.
func without(ranges []rune, r rune) []rune {
	out := make([]rune, 0, len(ranges)+2)
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if r < lo || r > hi {
			out = append(out, lo, hi)
			continue
		}
		if lo < r {
			out = append(out, lo, r-1)
		}
		if r < hi {
			out = append(out, r+1, hi)
		}
	}
	return out
}

func contains(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}
