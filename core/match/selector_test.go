package match_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

const buttonChain = `button.btn.btn-primary:attr__class="btn btn-primary"attr__data-attr="signup"attr__id="cta"attr__type="submit"attr_id="cta"` +
	`nth-child="2"nth-of-type="1"text="Sign up";form.signup-form:attr__class="signup-form"nth-child="1"nth-of-type="1";` +
	`section:nth-child="3"nth-of-type="2";main:nth-child="1"nth-of-type="1";body:nth-child="2"nth-of-type="1"`

func TestSelectorMatch(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, selector, chain string
		want                  bool
	}{
		{"how an attribute starts", `[data-attr^="sign"]`, buttonChain, true},
		{"how it starts, not", `[data-attr^="ign"]`, buttonChain, false},
		{"how it ends", `[data-attr$=up]`, buttonChain, true},
		{"any part of it", `[class*='n-prim']`, buttonChain, true},
		{"no part of it", `[class*='xn']`, buttonChain, false},
		{"no attribute contains an empty part", `[class*='']`, buttonChain, false},
		{"an empty value equals an empty attribute", `[x=""]`, `a:attr__x=""`, true},
		{"an attribute that is not there equals nothing", `[y=""]`, `a:attr__x=""`, false},
		{"white space inside brackets", `[ type = "submit" ]:nth-child( 2 )`, buttonChain, true},
		{"a class with a dot, escaped", `.w-1\.5`, `a.w-1.5:attr__class="w-1.5"`, true},
		{"a class with a dot before a digit", `a.w-1.5`, `a.w-1.5:attr__class="w-1.5"`, true},
		{"hexadecimal escapes take the space behind them", `.\31 23.\3a x`, `a:attr__class="123 :x"`, true},
		{"they have six digits at most", `.\0000311`, `a:attr__class="11"`, true},
		{"an attribute with a colon, escaped", `[\:to="/x"]`, `a:attr__:to="/x"`, true},
		{"a class that is all bracket", `.[mask:x]`, `a:attr__class="[mask:x]"`, true},
		{"a dash before a true attribute", `.a-[x="1"]`, `a.a-:attr__x="1"`, true},
		{"a tag in another alphabet", `größe`, `größe`, true},
		{"tags have case", `Button`, buttonChain, false},
		{"an unknown position matches no number", `section:nth-child(1)`, `section`, false},
		{"the place 0 is a place", `a:nth-child(0):nth-of-type(0)`, `a:nth-child="0"nth-of-type="0"`, true},
		{"of its type, too", `a:nth-of-type(0)`, `a:nth-of-type="2"`, false},
		{"and of the children", `a:nth-child(0)`, `a:nth-child="2"`, false},
		{"a dash before an attribute with white space", `.a-[ x ^= "1" ]`, `a.a-:attr__x="12"`, true},
		{"a dash before a bracket without quotes", `.a-[x=1]`, `a:attr__class="a-[x=1]"`, true},
		{"a dash before a bracket around a quoted text", `.a-["x"]`, `a:attr__class="a-[\"x\"]"`, true},
		{"a dash before a bracket that compares nothing", `.a-[x^"1"]`, `a:attr__class="a-[x^\"1\"]"`, true},
		{"star alone is any element", `*`, `a`, true},
		{"star alone needs an element", `*`, ``, false},
		{"one element is not two", `button button`, buttonChain, false},
		{"a run may start over", `b > a > c`, `c;a;a;b;c;a;b`, true},
		{"runs keep their order", `x > a b > c`, `c;b;d;a;x`, true},
		{"runs do not overlap", `x > a a > c`, `c;a;x`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := match.CompileSelector(c.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Match(match.NewChain(c.chain)); got != c.want {
				t.Errorf("%s is %v", c.selector, got)
			}
		})
	}
}

func TestSelectorRefused(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, selector, detail string }{
		{"nothing", "", "character 1: the selector is empty"},
		{"white space", "  ", "character 1: the selector is empty"},
		{"a list", "a, b", "character 2: lists of selectors"},
		{"the next sibling", "é + b", "character 3: '+' is not supported"},
		{"a later sibling", "a ~ b", "character 3: '~' is not supported"},
		{"a namespace", "*|a", "character 2: namespaces"},
		{"a pseudo-class", ".btn:hover", `character 5: the pseudo-class ":hover"`},
		{"a pseudo-class with brackets", "a:not(.b)", `character 2: the pseudo-class ":not"`},
		{"a pseudo-element", "a::before", "character 2: pseudo-elements"},
		{"a formula", "a:nth-child(2n+1)", "character 13: only a number"},
		{"no number", "a:nth-child()", "character 13: only a number"},
		{"no brackets", "a:nth-child", "character 12: the selector ends too early"},
		{"two places", "a:nth-child(1):nth-child(2)", "character 15: an element has only one place"},
		{"a bare attribute", "a[disabled]", "character 11: an attribute must be compared"},
		{"a word of an attribute", `[a~="b"]`, `character 3: "~=" is not supported`},
		{"a flag", `[a="b" i]`, "character 8: unexpected 'i'"},
		{"a quote without an end", `[a="b]`, "character 4: the quote is never closed"},
		{"a bracket without an end", `[a="b"`, "character 7: the selector ends too early"},
		{"a class bracket without an end", `.a-[b`, "character 4: the bracket is never closed"},
		{"a class without a name", "a..b", "character 3: unexpected '.'"},
		{"an id without a name", "#", "character 2: the selector ends too early"},
		{"a child without a parent", "> a", "character 1: unexpected '>'"},
		{"a parent without a child", "a >", "character 4: the selector ends too early"},
		{"a tag behind an attribute", `[a="b"]c`, "character 8: unexpected 'c'"},
		{"a backslash at the end", `a\`, "character 2: nothing comes after the backslash"},
		{"too long", strings.Repeat("a ", 3000), "at most 4096 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := match.CompileSelector(c.selector)
			f := fault.From(err)
			if f == nil || f.Kind != fault.Invalid || f.Attr != "selector" || !strings.Contains(f.Detail, c.detail) {
				t.Fatalf("got %v, want %s", err, c.detail)
			}
			if s.Match(match.NewChain(buttonChain)) {
				t.Error("an invalid selector matches")
			}
		})
	}
}

// TestSelectorAgainstTheDefinition compares with a backtracking implementation of
// the definition on random chains.
func TestSelectorAgainstTheDefinition(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "c", "*"}
	matches := 0
	for range 20_000 {
		chain := make([]string, random.IntN(9))
		for i := range chain {
			chain[i] = letters[random.IntN(3)]
		}
		parts := []string{letters[random.IntN(4)]}
		for range random.IntN(5) {
			parts = append(parts, []string{" ", ">"}[random.IntN(2)], letters[random.IntN(4)])
		}
		s, err := match.CompileSelector(strings.Join(parts, ""))
		if err != nil {
			t.Fatal(parts, err)
		}
		want := false
		for at := range chain {
			want = want || fits(parts, chain[at:])
		}
		if got := s.Match(match.NewChain(strings.Join(chain, ";"))); got != want {
			t.Fatalf("%q over %q is %v", strings.Join(parts, ""), chain, got)
		}
		if want {
			matches++
		}
	}
	if matches < 2000 || matches > 18_000 {
		t.Errorf("%d of 20000 chains match; want a balanced sample", matches)
	}
}

// fits reports whether the last of parts fits the first of chain and the
// others its ancestors.
func fits(parts, chain []string) bool {
	last := parts[len(parts)-1]
	if last != "*" && last != chain[0] {
		return false
	}
	if len(parts) == 1 {
		return true
	}
	outer := parts[:len(parts)-2]
	for at := 1; at < len(chain); at++ {
		if fits(outer, chain[at:]) {
			return true
		}
		if parts[len(parts)-2] == ">" {
			return false
		}
	}
	return false
}

// TestSelectorDoesNotExplode does not end if matching backtracks.
func TestSelectorDoesNotExplode(t *testing.T) {
	t.Parallel()
	chain := match.NewChain(strings.Repeat("a;", 2000))
	for _, step := range []string{"a ", "a > a ", "* ", "* > "} {
		s, err := match.CompileSelector("b " + strings.Repeat(step, 100) + "a")
		if err != nil {
			t.Fatal(err)
		}
		if s.Match(chain) {
			t.Error(step)
		}
	}
}

func FuzzSelector(f *testing.F) {
	for _, v := range loadVectors(f).Vectors {
		f.Add(v.Selector, v.Chain)
	}
	for _, seed := range []string{`.a-[`, `[a^='`, `\`, `a:nth-child( 1 `, `.w-1.5.\31 x > *`} {
		f.Add(seed, buttonChain)
	}
	f.Fuzz(func(t *testing.T, selector, chain string) {
		s, err := match.CompileSelector(selector)
		if (s == nil) != (err != nil) {
			t.Fatal(s, err)
		}
		got := s.Match(match.NewChain(chain))
		if got && len(match.NewChain(chain).Elements()) == 0 {
			t.Error("a selector matches a chain without elements")
		}
		if again, err := match.CompileSelector(" " + selector + " "); err == nil && s != nil && again.Match(match.NewChain(chain)) != got {
			t.Error("surrounding white space changes the result")
		}
	})
}

func BenchmarkSelector(b *testing.B) {
	for _, text := range []string{"button", ".btn-primary", "main form > button[type=submit]", "nav a.link", `div > div > [id="x"]`} {
		b.Run(fmt.Sprintf("%q", text), func(b *testing.B) {
			s, err := match.CompileSelector(text)
			if err != nil {
				b.Fatal(err)
			}
			c := match.NewChain(buttonChain)
			b.ReportAllocs()
			for b.Loop() {
				s.Match(c)
			}
		})
	}
}
