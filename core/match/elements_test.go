package match_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// elementVector is one case of testdata/elements.json: a selector, a step or
// the steps of an action against one event.
type elementVector struct {
	ID       string
	Kind     string
	Chain    string `json:"elements_chain"`
	Selector string
	Step     stepVector
	Steps    []stepVector
	Event    struct {
		Event            string
		Properties       map[string]json.RawMessage
		PersonProperties map[string]json.RawMessage `json:"person_properties"`
	}
	Expected bool
}

type stepVector struct {
	Event        *string
	URL          string
	URLMatching  string `json:"url_matching"`
	TagName      string `json:"tag_name"`
	Text         string
	TextMatching string `json:"text_matching"`
	Href         string
	HrefMatching string `json:"href_matching"`
	Selector     string
	Properties   []struct {
		Key, Type, Operator string
		Value               json.RawMessage
	}
}

// superseded lists vectors for an older selector grammar, which has no ^= and $=.
var superseded = map[string]bool{"sel-unsupported-op": true}

func TestElementVectors(t *testing.T) {
	t.Parallel()
	all := loadVectors(t)
	if len(all.Vectors) < 91 || len(all.Actions) < 3 {
		t.Fatal("vectors are missing")
	}
	for _, v := range append(all.Vectors, all.Actions...) {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			got := false
			switch v.Kind {
			case "selector":
				s, _ := match.CompileSelector(v.Selector)
				got = s.Match(match.NewChain(v.Chain))
			case "step":
				got = passes(t, v, v.Step)
			default:
				for _, s := range v.Steps {
					got = got || passes(t, v, s)
				}
			}
			if got != (v.Expected != superseded[v.ID]) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// passes evaluates a step with the types of this package.
func passes(t *testing.T, v elementVector, s stepVector) bool {
	t.Helper()
	chain := match.NewChain(v.Chain)
	env := &match.Env{Now: now}
	if s.Event != nil && *s.Event != v.Event.Event {
		return false
	}
	if s.URL != "" {
		way, err := match.ParseMatching(s.URLMatching, match.Contains)
		if err != nil {
			t.Fatal(err)
		}
		var url string
		_ = json.Unmarshal(v.Event.Properties["$current_url"], &url)
		p, _ := match.CompilePattern(s.URL, way, false)
		if url == "" || !p.Match(url) {
			return false
		}
	}
	elements, err := match.CompileElements(match.ElementSpec{TagName: s.TagName, Text: s.Text, TextMatching: s.TextMatching,
		Href: s.Href, HrefMatching: s.HrefMatching, Selector: s.Selector})
	if err != nil {
		t.Fatal(err)
	}
	if !elements.Match(chain) {
		return false
	}
	for _, p := range s.Properties {
		spec := match.Spec{Key: p.Key, Operator: p.Operator, Value: p.Value}
		var got match.Result
		switch p.Type {
		case "element":
			got = askElements(t, spec, chain)
		case "person":
			got = property(t, spec, v.Event.PersonProperties[p.Key], env)
		default:
			got = property(t, spec, v.Event.Properties[p.Key], env)
		}
		if got != match.True {
			return false
		}
	}
	return true
}

func property(t *testing.T, spec match.Spec, raw json.RawMessage, env *match.Env) match.Result {
	t.Helper()
	f, err := match.Compile(spec, match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var v match.Value
	if raw != nil {
		if v, err = match.Parse(raw); err != nil {
			t.Fatal(err)
		}
	}
	return f.Match(&v, env)
}

func askElements(t *testing.T, spec match.Spec, chain *match.Chain) match.Result {
	t.Helper()
	f, err := match.CompileElementFilter(spec, match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Match(chain, &match.Env{Now: now})
}

func TestPattern(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		way       match.Matching
		fold      bool
		text, yes string
		no        string
	}{
		{"exact is the whole text with its case", match.Exact, true, "Sign up", "Sign up", "sign up"},
		{"contains is anywhere", match.Contains, false, "b", "abc", "aBc"},
		{"contains without case, in any alphabet", match.Contains, true, "ÜBER", "Alles über uns", "Alles uber uns"},
		{"percent is any run", match.Contains, false, "exampl_.com/%.html", "https://example.com/a/index.html", "https://example.com/index.htm"},
		{"percent may be nothing", match.Contains, false, "a%b", "xaby", "ba"},
		{"underscore is one character", match.Contains, false, "a_c", "aéc", "ac"},
		{"underscores only", match.Contains, false, "__", "éé", "é"},
		{"a backslash makes them plain", match.Contains, false, `100\%\_`, "=100%_", "=100xx"},
		{"a backslash before anything else is itself", match.Contains, false, `a\b`, `a\b`, `ab`},
		{"parts come in their order", match.Contains, false, "a%b%c", "a-b-c", "a-c-b"},
		{"parts do not overlap", match.Contains, false, "ab%ba", "abba", "aba"},
		{"an expression is found anywhere", match.Regex, true, "sign(up|in)", "/signin?", "/SIGNIN"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := match.CompilePattern(c.text, c.way, c.fold)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Match(c.yes) || p.Match(c.no) {
				t.Errorf("%q: %q %v, %q %v", c.text, c.yes, p.Match(c.yes), c.no, p.Match(c.no))
			}
		})
	}
}

func TestElementSpecProblems(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		spec  match.ElementSpec
		field string
		code  string
	}{
		{"a selector that cannot be read", match.ElementSpec{Selector: "a:hover"}, "selector", "invalid_input"},
		{"an expression that cannot be read", match.ElementSpec{Text: "(", TextMatching: "regex"}, "text", "invalid_input"},
		{"look-ahead", match.ElementSpec{Href: "(?=x)", HrefMatching: "regex"}, "href", "invalid_input"},
		{"an unknown way", match.ElementSpec{Text: "x", TextMatching: "like"}, "text_matching", "invalid_choice"},
		{"an unknown way, unused", match.ElementSpec{HrefMatching: "like"}, "href_matching", "invalid_choice"},
		{"the first of two", match.ElementSpec{Text: "(", TextMatching: "regex", Selector: "a,b"}, "text", "invalid_input"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test, err := match.CompileElements(c.spec)
			f := fault.From(err)
			if f == nil || f.Attr != c.field || f.Code != c.code || f.Kind != fault.Invalid {
				t.Errorf("got %v", err)
			}
			if test.Match(match.NewChain(buttonChain)) || test.Match(match.NewChain("")) || test.Always() {
				t.Error("a test that cannot be read passes")
			}
		})
	}
	if test, err := match.CompileElements(match.ElementSpec{}); err != nil || !test.Always() || !test.Match(match.NewChain("")) {
		t.Error("no condition must hold for every event", err)
	}
	if test, err := match.CompileElements(match.ElementSpec{Text: ".*", TextMatching: "regex"}); err != nil || test.Match(match.NewChain("a;b")) {
		t.Error("a text must be there", err)
	}
}

// TestElementFilterOnLongTexts has an element whose text is too long for a pattern: it leaves the result unknown, unless
// another element decides.
func TestElementFilterOnLongTexts(t *testing.T) {
	t.Parallel()
	long := `a:text="` + strings.Repeat("a", match.MaxPatternText+1) + `"`
	for _, c := range []struct {
		operator, value, chain string
		want                   match.Result
	}{
		{"regex", `"^b$"`, long, match.Unknown},
		{"regex", `"^b$"`, long + `;a:text="c"`, match.Unknown},
		{"regex", `"^b$"`, `a:text="c";` + long, match.Unknown},
		{"regex", `"^b$"`, long + `;a:text="b"`, match.True},
		{"not_regex", `"^b$"`, long + `;a:text="c"`, match.Unknown},
		{"not_regex", `"^b$"`, long + `;a:text="b"`, match.False},
	} {
		f, err := match.CompileElementFilter(match.Spec{Key: "text", Operator: c.operator, Value: []byte(c.value)}, match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var budget match.Budget
		budget.Reset(match.DefaultBudget)
		if got := f.Match(match.NewChain(c.chain), &match.Env{Budget: &budget}); got != c.want {
			t.Errorf("%s %s on %.40s: got %s, want %s", c.operator, c.value, c.chain, got, c.want)
		}
	}
}

func TestElementFilter(t *testing.T) {
	t.Parallel()
	chain := `span:text="Pricing";a:href="/pricing"text="Pricing plans";nav`
	cases := []struct {
		name, key, operator, value string
		want                       bool
	}{
		{"one of the texts is enough", "text", "exact", `"pricing plans"`, true},
		{"the opposite must hold for every text", "text", "is_not", `"Pricing"`, false},
		{"and does", "text", "is_not", `"Docs"`, true},
		{"of a list any", "tag_name", "exact", `["div","nav"]`, true},
		{"of a list none", "tag_name", "is_not", `["div","nav"]`, false},
		{"there is an href", "href", "is_set", `"is_set"`, true},
		{"so it is not missing", "href", "is_not_set", `"is_not_set"`, false},
		{"a pattern", "href", "regex", `"^/pri"`, true},
		{"a pattern that cannot be read passes nothing", "href", "not_regex", `"("`, false},
		{"a selector", "selector", "", `"nav span"`, true},
		{"any of the selectors", "selector", "exact", `["ul","nav > a"]`, true},
		{"none of the selectors", "selector", "is_not", `["ul","li"]`, true},
		{"the empty selector matches nothing", "selector", "exact", `""`, false},
		{"a selector that cannot be read passes nothing, negated or not", "selector", "is_not", `"a:hover"`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := match.Spec{Key: c.key, Operator: c.operator, Value: []byte(c.value)}
			if got := askElements(t, spec, match.NewChain(chain)); got != match.Of(c.want) {
				t.Errorf("got %v", got)
			}
		})
	}
	none := match.NewChain("")
	if askElements(t, match.Spec{Key: "text", Operator: "is_not", Value: []byte(`"x"`)}, none) != match.True ||
		askElements(t, match.Spec{Key: "text", Operator: "exact", Value: []byte(`"x"`)}, none) != match.False {
		t.Error("without elements the rules for a missing property hold")
	}
}

func TestElementFilterRefused(t *testing.T) {
	t.Parallel()
	for _, spec := range []match.Spec{
		{Key: "style", Value: []byte(`"x"`)},
		{Key: "selector", Operator: "regex", Value: []byte(`"x"`)},
		{Key: "tag_name", Operator: "icontains", Value: []byte(`"x"`)},
		{Key: "text", Operator: "sounds_like", Value: []byte(`"x"`)},
	} {
		f, err := match.CompileElementFilter(spec, match.Options{})
		if !fault.Is(err, fault.Invalid) || f.Match(match.NewChain(buttonChain), &match.Env{}) != match.False {
			t.Errorf("%v: %v", spec, err)
		}
	}
	for _, value := range []string{`"a:hover"`, `5`, ``, `["a",1]`} {
		f, err := match.CompileElementFilter(match.Spec{Key: "selector", Value: []byte(value)}, match.Options{})
		if err != nil || fault.From(f.Problem()) == nil || fault.From(f.Problem()).Attr != "value" {
			t.Errorf("%s: %v, %v", value, err, f.Problem())
		}
	}
}

// TestElementsAllocateNothing checks that a reused Chain does not allocate, also
// when values have escapes.
func TestElementsAllocateNothing(t *testing.T) {
	chain := match.NewChain("")
	texts := []string{buttonChain, `a:attr__x="say \"hi\""href="/x"text="\"quoted\"";b.c`}
	test, err := match.CompileElements(match.ElementSpec{TagName: "button", Text: "log%in", TextMatching: "contains", Href: "^/x", HrefMatching: "regex", Selector: "main form > a.x[href^='/']"})
	if err != nil {
		t.Fatal(err)
	}
	filter, err := match.CompileElementFilter(match.Spec{Key: "text", Operator: "icontains", Value: []byte(`"nope"`)}, match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := &match.Env{Now: now}
	n := testing.AllocsPerRun(200, func() {
		for _, text := range texts {
			chain.Reset(text)
			if test.Match(chain) || filter.Match(chain, env) != match.False {
				t.Error("it matches")
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkElements matches one event against the element conditions of many
// steps, none of which passes: read once, compared often.
func BenchmarkElements(b *testing.B) {
	var tests []*match.ElementTest
	for _, s := range []match.ElementSpec{
		{TagName: "a", Text: "Sign up"}, {Text: "log in", TextMatching: "contains"}, {Href: "/x"}, {Selector: "nav > a"},
		{Selector: ".hero [data-attr=\"cta\"]"}, {Text: "^Log", TextMatching: "regex"}, {TagName: "input"}, {Selector: "#other"},
		{Selector: "main form > a"}, {Href: "pric%ing", HrefMatching: "contains"},
	} {
		t, err := match.CompileElements(s)
		if err != nil {
			b.Fatal(err)
		}
		tests = append(tests, t)
	}
	c := match.NewChain("")
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(buttonChain)
		for _, t := range tests {
			if t.Match(c) {
				b.Fatal("it matches")
			}
		}
	}
}

func TestElementTestsWithoutConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec match.ElementSpec
		want bool
	}{{match.ElementSpec{}, true}, {match.ElementSpec{Selector: "a"}, false}, {match.ElementSpec{TagName: "a"}, false}, {match.ElementSpec{Selector: "a["}, false}} {
		test, _ := match.CompileElements(c.spec)
		if got := test.Always(); got != c.want {
			t.Errorf("%+v: %t", c.spec, got)
		}
	}
}
