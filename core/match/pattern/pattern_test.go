package pattern_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/match/pattern"
	"github.com/guidonhq/guidon/core/match/search"
)

func compile(t testing.TB, text string) *pattern.Pattern {
	t.Helper()
	p, _, err := pattern.Compile(text, 100_000)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func TestClassesAreThoseOfUnicode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{`^\w+$`, "José", true}, {`^\w+$`, "e\u0301", true}, {`^\w+$`, "a\u200db", true}, {`^\w+$`, "Ⅷ", true}, {`^\w+$`, "ⓐ", true},
		{`^\w+$`, "名前", true}, {`^\w+$`, "a b", false}, {`^\w+$`, "a☃", false}, {`^\W+$`, "☃", true}, {`^\W+$`, "é", false},
		{`^\d+$`, "٣٤", true}, {`^\d+$`, "12", true}, {`^\d+$`, "½", false}, {`^\D+$`, "٣", false}, {`^\D$`, "é", true},
		{`^\s$`, "\u00a0", true}, {`^\s$`, "\u2003", true}, {`^\s$`, "\v", true}, {`^\s$`, "\u0085", true}, {`^\S$`, "\v", false}, {`^\S$`, "é", true}, {`^\S$`, "\u3000", false},
		{`^[\w.]+$`, "é.名", true}, {`^[^\w]+$`, "é", false}, {`^[^\w]+$`, "☃!", true}, {`^[\W\d]+$`, "☃٣", true}, {`^[\W\d]+$`, "é", false},
		{`^[^\W]+$`, "é", true}, {`^[^\W\d]+$`, "٣", false}, {`^[\D]+$`, "٣", false}, {`^[\S]$`, "\u00a0", false}, {`^[^\S]$`, "\u00a0", true}, {`^[\s\d]+$`, "1\v\u0663", true},
		{`^[]\w]+$`, "]é", true}, {`^[^]\w]+$`, "é", false}, {`^[\]\w]+$`, "]é", true}, {`^[[:alpha:]\d]+$`, "a٣", true}, {`^[\w-z]+$`, "é-z", true}, {`^[\p{Lu}\d]+$`, "É٣", true},
		{`\Q\w\E`, `é\w`, true}, {`\Q\w\E`, `é`, false}, {`\\w`, `é\w`, true}, {`^\x{e9}\w$`, "éé", true}, {`(?i)^É\w$`, "éé", true},
		{`\bé`, "é", true}, {`\bé`, "aé", false}, {`é\b`, "é!", true}, {`é\b`, "éa", false}, {`é\B`, "éa", true}, {`\Bé`, "é", false}, {`\B`, "é", false}, {`\b`, "é", true}, {`\b`, "☃", false},
		{`\bcafé\b`, "un café noir", true}, {`\bcaf\b`, "un café noir", false}, {`\bZ\b`, "é Z", true}, {`\bZ\b`, "éZ", false}, {`Z\b`, "éZ", true}, {`^éZ.\b$`, "éZé", true},
		{`\b[^x]`, "xé", false}, {`^.\b`, "é", true}, {`^..\b`, "éa", true}, {`^.\b.$`, "éa", false}, {`^.\b.$`, "é ", true}, {`^\w{2}\b$`, "éZ", true}, {`(?s)^.{3}\b$`, "\né日", true},
		{`(?i)\bk\b`, "\u212a é", true}, {`(?m)^é\b$`, "a\né\nb", true}, {`x\b|\bé`, "éx", true}, {`\b(?:é|Z)+\b`, "aéZ éZ", true}, {`\bw`, "éw", false},
	} {
		if got := compile(t, c.pattern).MatchString(c.text); got != c.want {
			t.Errorf("%s on %q: %v", c.pattern, c.text, got)
		}
	}
}

// TestBoundariesOfGeneratedPatterns compares a pattern on a text with the same
// pattern of Go on the text with each word character beyond ASCII replaced by one of
// ASCII, which has the same boundaries.
func TestBoundariesOfGeneratedPatterns(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	to := strings.NewReplacer("é", "q", "日", "k", "☃", "#")
	for range 1_000 {
		atoms := []string{"é", "日", "Z", "a", " ", "☃", ".", `\b`, `\B`, `\w`, `\W`, "[éZ]", "[^aé]", "[^Z]", "(?:é|a)", "é*", "Z?", "(?:a|日Z)+", "^", "$"}
		var p, text strings.Builder
		for range 1 + rng.IntN(5) {
			p.WriteString(atoms[rng.IntN(len(atoms))])
		}
		for range rng.IntN(6) {
			text.WriteString([]string{"é", "日", "Z", "a", " ", "☃"}[rng.IntN(6)])
		}
		want, err := regexp.Compile(to.Replace(p.String()))
		if err != nil {
			continue
		}
		if got := compile(t, p.String()).MatchString(text.String()); got != want.MatchString(to.Replace(text.String())) {
			t.Fatalf("%s on %q: %v", p.String(), text.String(), got)
		}
	}
}

func TestSizeCoversBothPrograms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`^\w+@\w+$`, `\bfoo.bar\b`, `[\W]`, `(?i)\bkelvin\b`, `\d{40}`, `(\b.){20}`} {
		size, err := pattern.Check(text, 100_000)
		plain, _ := search.Size(strings.NewReplacer(`\w`, "x", `\b`, "", `\W`, "x", `\d`, "x").Replace(text))
		if err != nil || size.Memory <= plain.Memory || size.Insts < plain.Insts {
			t.Errorf("%s: %+v, %v", text, size, err)
		}
	}
	for _, text := range []string{strings.Repeat(`\w`, 5000), `[` + strings.Repeat(`\W`, 4000) + `]`, strings.Repeat(`.`, 9000) + `\b`} {
		if _, err := pattern.Check(text, 10_000); err == nil {
			t.Errorf("%s… is not too large", text[:10])
		}
	}
	if size, err := pattern.Check(`a{100}`, 10_000); err != nil || size.Insts > 110 {
		t.Errorf("a pattern without classes: %+v, %v", size, err)
	}
}

func TestInvalidPatternsNameTheTextOfTheAuthor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\w(`, `(?=\w)`, `[z-\w]`, `\w**`} {
		if _, _, err := pattern.Compile(text, 10_000); err == nil || strings.Contains(err.Error(), `\p{`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add(`\b[\W-\d]é?`, "aé")
	f.Add(`[^]\S]\B(?i)k`, "\u212a")
	f.Fuzz(func(t *testing.T, text, s string) {
		p, _, err := pattern.Compile(text, 10_000)
		if err != nil {
			return
		}
		want, err := regexp.Compile(text)
		if err != nil {
			t.Fatalf("%q compiles here only", text)
		}
		for i := range len(s) {
			if s[i] >= 0x80 || s[i] == '\v' {
				p.MatchString(s)
				return
			}
		}
		if p.MatchString(s) != want.MatchString(s) {
			t.Errorf("%q on %q", text, s)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for name, c := range map[string][2]string{
		"ascii": {`^[\w.+-]+@[\w-]+\.\w+$`, "someone.long@example.test"}, "unicode": {`^[\w.+-]+@[\w-]+\.\w+$`, "somëone.long@example.test"}, "boundary": {`\bexämple\b`, "somëone.long@exämple.test"},
	} {
		p := compile(b, c[0])
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.MatchString(c[1])
			}
		})
	}
}
