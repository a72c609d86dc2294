package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// translation is a pattern with the Perl classes spelled out.
type translation struct {
	ascii    string // for ASCII texts: only \s differs from Go's
	unicode  string
	boundary bool // it has \b or \B
}

// The members of the classes in the syntax of a bracket expression. The word
// characters of Rust's regex are those with the property Alphabetic, marks, decimal
// digits, connector punctuation and the joiners. Alphabetic is letters, letter
// numbers, and the circled and squared letters.
const (
	wordMembers  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}`
	digitMembers = `\p{Nd}`
	spaceMembers = `\t-\r\x{85}\p{Z}`
	asciiSpaces  = `\t-\r `
)

// wordMemory is the memory of the class of word characters, in instructions.
const wordMemory = 160

// classMemory reports whether a pattern may have a class that differs between ASCII
// and Unicode, and the memory of those that are large. It is an estimate from the
// text, made before the classes are spelled out.
func classMemory(pattern string) (memory int64, found bool) {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		i++
		switch pattern[i] {
		case 'w', 'W':
			memory, found = memory+wordMemory, true
		case 'd', 'D', 's', 'S', 'b', 'B':
			found = true
		}
	}
	return memory, found
}

// translate spells out the classes of a pattern that is valid.
func translate(pattern string) translation {
	var out translation
	var ascii, wide strings.Builder
	inClass := false
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i += out.escape(&ascii, &wide, pattern[i:], inClass)
			continue
		case c == '[' && inClass && strings.HasPrefix(pattern[i:], "[:"):
			if end := strings.Index(pattern[i:], ":]"); end > 0 { // a class such as [:alpha:]
				both(&ascii, &wide, pattern[i:i+end+2])
				i += end + 2
				continue
			}
		case c == '[' && !inClass:
			n := classStart(pattern[i:])
			both(&ascii, &wide, pattern[i:i+n])
			inClass = true
			i += n
			continue
		case c == ']' && inClass:
			inClass = false
		}
		both(&ascii, &wide, pattern[i:i+1])
		i++
	}
	out.ascii, out.unicode = ascii.String(), wide.String()
	return out
}

func both(a, b *strings.Builder, s string) {
	a.WriteString(s)
	b.WriteString(s)
}

// classStart returns the length of the start of a bracket expression: the bracket, a
// negation, and a first bracket that is a member.
func classStart(s string) int {
	n := 1
	if n < len(s) && s[n] == '^' {
		n++
	}
	if n < len(s) && s[n] == ']' {
		n++
	}
	return n
}

// escape writes the escape sequence at the start of s and returns its length.
func (t *translation) escape(ascii, wide *strings.Builder, s string, inClass bool) int {
	c := s[1]
	switch {
	case c == 'Q' && !inClass:
		end := strings.Index(s, `\E`)
		if end < 0 {
			end = len(s)
		}
		both(ascii, wide, s[:end])
		return end
	case (c == 'p' || c == 'P' || c == 'x') && len(s) > 2 && s[2] == '{':
		if end := strings.IndexByte(s, '}'); end > 0 {
			both(ascii, wide, s[:end+1])
			return end + 1
		}
	case (c == 'b' || c == 'B') && !inClass:
		t.boundary = true
	case strings.IndexByte("wWdDsS", c) >= 0:
		ascii.WriteString(asciiClass(c, inClass))
		wide.WriteString(unicodeClass(c, inClass))
		return 2
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	both(ascii, wide, s[:1+n])
	return 1 + n
}

// asciiClass returns a class for ASCII texts. Go's \s lacks the vertical tab.
func asciiClass(c byte, inClass bool) string {
	switch {
	case c == 's' && inClass:
		return asciiSpaces
	case c == 's':
		return "[" + asciiSpaces + "]"
	case c == 'S' && inClass:
		return `\x00-\x08\x0e-\x1f!-\x{10ffff}`
	case c == 'S':
		return "[^" + asciiSpaces + "]"
	}
	return `\` + string(c)
}

// unicodeClass returns a class of Unicode. A negated class within brackets is the
// list of the other ranges, because brackets do not nest.
func unicodeClass(c byte, inClass bool) string {
	members := map[byte]string{'w': wordMembers, 'd': digitMembers, 's': spaceMembers}[c|0x20]
	negated := c < 'a'
	switch {
	case inClass && negated:
		return others[c]
	case inClass:
		return members
	case negated:
		return "[^" + members + "]"
	}
	return "[" + members + "]"
}

// others lists the members of the negated classes.
var others = map[byte]string{'W': otherThan(wordMembers), 'D': `\P{Nd}`, 'S': otherThan(spaceMembers)}

func otherThan(members string) string {
	var out strings.Builder
	ranges := rangesOf("[^" + members + "]")
	for i := 0; i < len(ranges); i += 2 {
		fmt.Fprintf(&out, `\x{%x}-\x{%x}`, ranges[i], ranges[i+1])
	}
	return out.String()
}

// compile compiles the pattern for texts beyond ASCII.
func (t *translation) compile() (*regexp.Regexp, error) {
	if !t.boundary {
		return regexp.Compile(t.unicode)
	}
	tree, err := syntax.Parse(t.unicode, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(rewriteEnclosed(tree))
}

var wordRanges = rangesOf("[" + wordMembers + "]")

func rangesOf(class string) []rune {
	re, err := syntax.Parse(class, syntax.Perl)
	if err != nil {
		panic(err) // the class is a constant
	}
	return re.Rune
}

// isWord reports whether r is a word character of Unicode.
func isWord(r rune) bool {
	if r < unicode.MaxLatin1 {
		return r == '_' || unicode.IsLetter(r) || '0' <= r && r <= '9'
	}
	lo, hi := 0, len(wordRanges)/2
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case r < wordRanges[2*mid]:
			hi = mid
		case r > wordRanges[2*mid+1]:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}
