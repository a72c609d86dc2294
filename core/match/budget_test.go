package match_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/match/search"
)

// compile compiles a filter whose value the operator accepts.
func compile(t *testing.T, operator string, value any) *match.Filter {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	f, err := match.Compile(match.Spec{Key: "k", Operator: operator, Value: raw}, match.Options{})
	if err != nil || f.Problem() != nil {
		t.Fatal(err, f.Problem())
	}
	return f
}

// soon is a generous bound of the time of a test on a slow machine.
const soon = time.Minute

func TestPatternsOverTheLimitAreNotCompiled(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, pattern := range map[string]string{
		"repetitions":        strings.Repeat("(a?){1000}", 380),
		"a short one":        strings.Repeat("(a?){1000}", 9) + "!$",
		"nested repetitions": strings.Repeat("(a{10}){100}", 20),
		"character classes":  strings.Repeat(`\pL`, 3000),
		"a long text":        strings.Repeat("x", 10_001),
	} {
		value, _ := json.Marshal(pattern)
		f, err := match.Compile(match.Spec{Key: "k", Operator: "regex", Value: value}, match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if problem := fault.From(f.Problem()); problem == nil || problem.Code != match.CodeTooLarge || problem.Attr != "value" {
			t.Errorf("%s: %v", name, f.Problem())
		}
		v := match.Text("a")
		if got := f.Match(&v, &match.Env{}); got != match.False {
			t.Errorf("%s: %s", name, got)
		}
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %s", took)
	}
}

func TestLimitsAddUp(t *testing.T) {
	t.Parallel()
	l := match.Limits{Expression: 1000, Definition: 1500, Project: 2000}
	quoted := func(s string) []byte { return fmt.Appendf(nil, "%q", s) }
	size, err := match.CheckPattern(l, "regex", quoted("a{900}"))
	if err != nil || size < 900 || size > 1000 {
		t.Fatalf("%d, %v", size, err)
	}
	if _, err := match.CheckPattern(l, "regex", quoted("a{1000}")); err == nil {
		t.Error("an expression over the limit fits")
	}
	if n, err := match.CheckPattern(l, "icontains", quoted("a{1000}")); n != 0 || err != nil {
		t.Errorf("a text has a size: %d, %v", n, err)
	}
	if n, err := match.CheckPattern(l, "not_regex", []byte(`["a{400}","b{400}"]`)); n < 800 || err != nil {
		t.Errorf("a list: %d, %v", n, err)
	}
	if _, err := match.CheckPattern(l, "regex", []byte(`["(a","b){1000}"]`)); err == nil {
		t.Error("a list that is one expression together fits")
	}
	if l.CheckDefinition("flag", 1500) != nil || l.CheckDefinition("flag", 1501) == nil {
		t.Error("the limit of a definition")
	}
	if l.CheckProject("flag", 1000, 1000) != nil || l.CheckProject("flag", 1000, 1001) == nil || l.CheckProject("flag", 0, 9000) != nil {
		t.Error("the limit of a project")
	}
}

// TestWorkIsPriced has the attacks on text operators: each is refused for its
// price, or is cheap.
func TestWorkIsPriced(t *testing.T) {
	t.Parallel()
	needles := make([]string, 900)
	for i := range needles {
		needles[i] = strings.Repeat("a", 400) + fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		filter  *match.Filter
		value   string
		want    match.Result
		refusal search.Refusal
		most    int64
	}{
		"a regular expression on a short text":     {compile(t, "regex", "(a?){300}b"), strings.Repeat("a", 100), match.False, match.NotRefused, 600_000},
		"on a text of 10 KB":                       {compile(t, "regex", "(a?){1000}!$"), strings.Repeat("a", 10<<10), match.Unknown, match.BudgetSpent, 0},
		"on a text of 100 KB":                      {compile(t, "regex", "a"), strings.Repeat("a", 100<<10), match.Unknown, match.TextTooLong, 0},
		"its negation":                             {compile(t, "not_regex", "a"), strings.Repeat("a", 100<<10), match.Unknown, match.TextTooLong, 0},
		"a regular expression that is only a text": {compile(t, "regex", "aab"), strings.Repeat("a", 64<<10), match.False, match.NotRefused, 300_000},
		"900 texts on 100 KB":                      {compile(t, "icontains_multi", needles), strings.Repeat("a", 100<<10), match.Unknown, match.BudgetSpent, 0},
		"none of 900 texts on 100 KB":              {compile(t, "not_icontains_multi", needles), strings.Repeat("a", 100<<10), match.Unknown, match.BudgetSpent, 0},
		"900 texts on 1 KB":                        {compile(t, "icontains_multi", needles), strings.Repeat("a", 1<<10), match.False, match.NotRefused, 1_000_000},
		"a text of 30 KB in 300 KB":                {compile(t, "icontains", strings.Repeat("a", 30<<10)+"b"), strings.Repeat("a", 300<<10), match.False, match.NotRefused, 400_000},
		"existence":                                {compile(t, "is_set", nil), strings.Repeat("a", 1<<20), match.True, match.NotRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var b match.Budget
			b.Reset(match.DefaultBudget)
			v := match.Text(c.value)
			if got := c.filter.Match(&v, &match.Env{Budget: &b}); got != c.want || b.Refusal() != c.refusal {
				t.Errorf("%s, refusal %d", got, b.Refusal())
			}
			if b.Spent() > c.most {
				t.Errorf("work %d, want at most %d", b.Spent(), c.most)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("took %s", took)
			}
			other := match.Text("x")
			if got := compile(t, "exact", "X").Match(&other, &match.Env{Budget: &b}); got != match.True {
				t.Errorf("a cheap match after it: %s", got)
			}
		})
	}
}

func TestPatternOfActionsIsLinear(t *testing.T) {
	t.Parallel()
	began := time.Now()
	text := strings.Repeat("a", 500<<10)
	for name, pattern := range map[string]string{
		"underscores":          strings.Repeat("_", 20_000),
		"and a letter":         strings.Repeat("_", 20_000) + "b",
		"a letter on each end": "a" + strings.Repeat("_", 20_000) + "b",
		"percent signs":        strings.Repeat("a%", 20_000) + "b",
		"a long text":          strings.Repeat("a", 20_000) + "b",
	} {
		for _, fold := range []bool{true, false} {
			p, err := match.CompilePattern(pattern, match.Contains, fold)
			if err != nil {
				t.Fatal(err)
			}
			var b match.Budget
			b.Reset(4 * int64(len(text)))
			if !p.Spend(&b, len(text)) {
				t.Errorf("%s: over its price", name)
			}
			if got := p.Match(text); got != (pattern[len(pattern)-1] == '_') {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %s", took)
	}
}

func TestSelectorsArePriced(t *testing.T) {
	t.Parallel()
	test, err := match.CompileElements(match.ElementSpec{Selector: strings.Repeat(".a.b[x=1] ", 100)})
	if err != nil {
		t.Fatal(err)
	}
	chain := match.NewChain(strings.Repeat("a", 10<<10))
	var b match.Budget
	b.Reset(match.DefaultBudget)
	if !test.Spend(&b, chain) || b.Spent() != 400*10<<10 {
		t.Errorf("work %d", b.Spent())
	}
	f, err := match.CompileElementFilter(match.Spec{Key: "selector", Value: []byte(`"a b c"`)}, match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset(100)
	if got := f.Match(chain, &match.Env{Budget: &b}); got != match.Unknown || b.Refusal() != match.BudgetSpent {
		t.Errorf("%s, refusal %d", got, b.Refusal())
	}
}
