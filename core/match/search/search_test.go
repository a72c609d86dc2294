package search_test

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/match/search"
)

// naiveContains is the simple search that Contains replaces.
func naiveContains(s, needle string) bool {
	lower := []byte(s)
	for i := range lower {
		lower[i] = search.LowByte(lower[i])
	}
	return strings.Contains(string(lower), needle)
}

// naiveLike compares the runes of each part at every position.
func naiveLike(pattern, s string, fold bool) bool {
	const anyRune = -1
	var parts [][]rune
	var part []rune
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		switch {
		case r == '%':
			parts, part = append(parts, part), nil
			continue
		case r == '_':
			r = anyRune
		case r == '\\' && i < len(pattern) && strings.IndexByte(`%_\`, pattern[i]) >= 0:
			r = rune(pattern[i])
			i++
		}
		part = append(part, r)
	}
	text := []rune(s)
	for _, part := range append(parts, part) {
		at := 0
		for ; ; at++ {
			if at+len(part) > len(text) {
				return false
			}
			same := true
			for i, want := range part {
				got := text[at+i]
				if fold {
					got, want = unicode.ToLower(got), unicode.ToLower(want)
				}
				same = same && (part[i] == anyRune || got == want)
			}
			if same {
				break
			}
		}
		text = text[at+len(part):]
	}
	return true
}

// randomText is a text of few different characters, which repeats itself.
func randomText(r *rand.Rand, most int, letters string) string {
	var b strings.Builder
	runes := []rune(letters)
	for range r.IntN(most + 1) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

func TestContainsAgreesWithTheSimpleSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		s, needle := randomText(r, 40, "aAbB.é"), strings.Map(func(c rune) rune {
			if c < utf8.RuneSelf {
				return unicode.ToLower(c)
			}
			return c
		}, randomText(r, 8, "aAbB.é"))
		if got, want := search.Contains(s, needle), naiveContains(s, needle); got != want {
			t.Fatalf("Contains(%q, %q) = %v", s, needle, got)
		}
	}
	long := strings.Repeat("a", 10_000)
	for _, needle := range []string{strings.Repeat("a", 9_999) + "b", strings.Repeat("a", 10_000), "b", strings.Repeat("a", 5_000) + "b" + strings.Repeat("a", 100)} {
		for _, s := range []string{long, long + "B", long + "B" + long, "B" + long} {
			if got, want := search.Contains(s, needle), naiveContains(s, needle); got != want {
				t.Errorf("needle of %d in a text of %d: %v", len(needle), len(s), got)
			}
		}
	}
}

func TestLikeAgreesWithTheSimpleSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		pattern, s, fold := randomText(r, 10, `aAbé%__\`), randomText(r, 30, `aAbéÉ_%\`), r.IntN(2) == 0
		if got, want := search.NewLike(pattern, fold).Match(s), naiveLike(pattern, s, fold); got != want {
			t.Fatalf("NewLike(%q, %v).Match(%q) = %v", pattern, fold, s, got)
		}
	}
	long := strings.Repeat("a", 3000)
	for _, pattern := range []string{strings.Repeat("a", 1500) + "b", strings.Repeat("_", 2000), strings.Repeat("_", 3001), "_" + strings.Repeat("a", 1500) + "B_", "a" + strings.Repeat("_", 1000) + "b", strings.Repeat("a_", 10) + "b"} {
		for _, s := range []string{long, long + "B", long + "é" + long + "b", "b" + long} {
			for _, fold := range []bool{true, false} {
				if got, want := search.NewLike(pattern, fold).Match(s), naiveLike(pattern, s, fold); got != want {
					t.Errorf("%.20q (%d) in a text of %d, fold %v: %v", pattern, len(pattern), len(s), fold, got)
				}
			}
		}
	}
}

func TestLikePrice(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int64{
		"":                                      1,
		"plain":                                 1,
		"%a%b%":                                 1,
		strings.Repeat("_", 20_000):             1,
		strings.Repeat("_", 20_000) + "x":       1,
		"a_b":                                   4,
		"a" + strings.Repeat("_", 20_000) + "b": 4,
		strings.Repeat("a_", 1000) + "b":        2002,
		"%x%" + "ab_c" + "%y":                   5,
	} {
		if got := search.NewLike(pattern, false).Price(); got != want {
			t.Errorf("%.20q: price %d, want %d", pattern, got, want)
		}
	}
}

// realSize is the number of instructions that regexp compiles.
func realSize(t *testing.T, pattern string) int64 {
	t.Helper()
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(program.Inst))
}

// maxFactor is how many times the real number of instructions, and a few more,
// an estimate may be.
const maxFactor = 4

func checkSize(t *testing.T, pattern string) {
	t.Helper()
	size, err := search.Size(pattern)
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	if size.Insts > 50_000 {
		return // too large to compile in a test
	}
	if n := realSize(t, pattern); size.Insts < n || size.Insts > maxFactor*n+8 {
		t.Errorf("%q: estimated %d, compiled %d", pattern, size.Insts, n)
	}
}

func TestSizeOfPatterns(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		``, `a`, `abc`, `(?i)abc`, `^a$`, `.`, `\pL`, `[a-z]`, `(a)`, `a*`, `a+`, `a?`, `a{3}`, `a{3,}`, `a{0}`, `a{0,3}`, `a{2,5}`, `(a?){100}`,
		`((a{10}){10}){10}`, `a|bc|d`, `(?:)*`, `(?:)+`, `(|a)*`, `(|a)+`, `(a*)*`, `(^)*`, `x{1000}`, `(?s).{10,20}`, `[^\x00-\x{10FFFF}]`, `\b\w+@example\.com\b`,
		`(?:foo|foobar|foobaz)`, `[[:alpha:]]{3,5}`, `((((((((a))))))))`, `\pL{50}`, `(?:a{0}){5}`, `(?:a{0,1}){5}`, `(?i)\pL\pN`,
	} {
		checkSize(t, pattern)
	}
}

// FuzzSize compares the estimate with the compiled program.
func FuzzSize(f *testing.F) {
	f.Add(`(a?){10}|b*c+`)
	f.Add(`[^a-z]{2,7}(?i:x|yy|)`)
	f.Fuzz(func(t *testing.T, pattern string) {
		if _, err := syntax.Parse(pattern, syntax.Perl); err == nil && len(pattern) < 200 {
			checkSize(t, pattern)
		}
	})
}

func TestSizeOfRandomPatterns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var build func(depth int) string
	build = func(depth int) string {
		if depth == 0 {
			return []string{"a", "bc", ".", "[a-f]", `\pL`, "^", "$", `\b`, "", "(?i:k)"}[r.IntN(10)]
		}
		one := func() string { return "(?:" + build(r.IntN(depth)) + ")" }
		switch r.IntN(7) {
		case 0:
			return one() + one()
		case 1:
			return one() + "|" + one() + "|" + one()
		case 2:
			return "(" + build(depth-1) + ")"
		case 3:
			return one() + []string{"*", "+", "?", "*?"}[r.IntN(4)]
		case 4:
			return fmt.Sprintf("%s{%d}", one(), r.IntN(9))
		case 5:
			return fmt.Sprintf("%s{%d,}", one(), r.IntN(9))
		}
		low := r.IntN(5)
		return fmt.Sprintf("%s{%d,%d}", one(), low, low+r.IntN(5))
	}
	for range 3000 {
		checkSizeAtLeast(t, build(5))
	}
}

// checkSizeAtLeast is checkSize without the upper bound: repetitions of nothing
// compile to almost nothing.
func checkSizeAtLeast(t *testing.T, pattern string) {
	t.Helper()
	size, err := search.Size(pattern)
	if err != nil || size.Insts > 50_000 {
		return
	}
	if n := realSize(t, pattern); size.Insts < n {
		t.Errorf("%q: estimated %d, compiled %d", pattern, size.Insts, n)
	}
}

// TestSizeIsCheap has patterns whose compilation takes gigabytes.
func TestSizeIsCheap(t *testing.T) {
	size, err := search.Size(strings.Repeat("(a?){1000}", 380))
	if err != nil || size.Insts < 380*3*1000 || size.Insts > 380*5*1000 {
		t.Fatalf("%+v, %v", size, err)
	}
	if n := testing.AllocsPerRun(1, func() { _, _ = search.Size(strings.Repeat("(a?){1000}", 380)) }); n > 20_000 {
		t.Errorf("%v allocations", n)
	}
	classes, err := search.Size(strings.Repeat(`\pL`, 100))
	if err != nil || classes.Memory < 100*100 || classes.Insts > 1000 {
		t.Errorf("classes: %+v, %v", classes, err)
	}
}

// FuzzContains compares Contains with the simple search.
func FuzzContains(f *testing.F) {
	f.Add("aaaaAAAAb", "aaab")
	f.Fuzz(func(t *testing.T, s, needle string) {
		lower := []byte(needle)
		for i := range lower {
			lower[i] = search.LowByte(lower[i])
		}
		if search.Contains(s, string(lower)) != naiveContains(s, string(lower)) {
			t.Errorf("%q in %q", lower, s)
		}
	})
}

// FuzzLike compares Like with the simple search.
func FuzzLike(f *testing.F) {
	f.Add(`a_b%c\%`, "xaab..C%", true)
	f.Fuzz(func(t *testing.T, pattern, s string, fold bool) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(s) || len(pattern)+len(s) > 300 {
			return
		}
		if search.NewLike(pattern, fold).Match(s) != naiveLike(pattern, s, fold) {
			t.Errorf("%q in %q, fold %v", pattern, s, fold)
		}
	})
}
