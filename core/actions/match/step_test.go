package match_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

var errWrong = errors.New("cidr/contains wants a network such as 10.0.0.0/8")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// filters is a step that asks for properties only.
func filters(list ...string) actionmatch.Step {
	var step actionmatch.Step
	for _, raw := range list {
		step.Properties = append(step.Properties, json.RawMessage(raw))
	}
	return step
}

const (
	yes     = match.True
	no      = match.False
	unknown = match.Unknown
)

func TestPropertyFilters(t *testing.T) {
	t.Parallel()
	const (
		event  = `{"plan":"Pro","n":5,"nil":null,"tags":["a","b"],"when":"2026-02-01","$feature/beta":"blue","ip":"10.0.0.1","v":"1.2.3","$group_1":"acme","$groups":{"company":"acme"}}`
		person = `{"email":"ada@example.com","age":42}`
		group  = `{"seats":5}`
		chain  = `span.label:text="Go"nth-child="1";a.btn:href="/x"text="Buy"nth-child="2";body:nth-child="1"`
	)
	cases := []struct {
		name, filter string
		want         match.Result
	}{
		{"the type is event when there is none", `{"key":"plan","value":"Pro"}`, yes},
		{"no operator is exact, without case", `{"key":"plan","value":"pro","type":"event"}`, yes},
		{"null operator and type are like none", `{"key":"plan","value":"pro","type":null,"operator":null}`, yes},
		{"exact takes any of a list", `{"key":"plan","value":["free","pro"]}`, yes},
		{"is_not takes none of a list", `{"key":"plan","operator":"is_not","value":["free","pro"]}`, no},
		{"in is exact", `{"key":"n","operator":"in","value":[4,5]}`, yes},
		{"not_in is is_not", `{"key":"n","operator":"not_in","value":[4,5]}`, no},
		{"icontains takes any of a list", `{"key":"plan","operator":"icontains","value":["zz","RO"]}`, yes},
		{"not_icontains needs all of a list", `{"key":"plan","operator":"not_icontains","value":["zz","ro"]}`, no},
		{"not_icontains passes with all of a list", `{"key":"plan","operator":"not_icontains","value":["zz","yy"]}`, yes},
		{"regex takes any of a list", `{"key":"plan","operator":"regex","value":["^x","^P"]}`, yes},
		{"not_regex needs all of a list", `{"key":"plan","operator":"not_regex","value":["^x","^P"]}`, no},
		{"a date before any of a list", `{"key":"when","operator":"is_date_before","value":["2026-01-01","2026-02-02"]}`, yes},
		{"a version equal to any of a list", `{"key":"v","operator":"semver_eq","value":["2.0.0","1.2.3"]}`, yes},
		{"a version unlike all of a list", `{"key":"v","operator":"semver_neq","value":["2.0.0","1.2.3"]}`, no},
		{"numbers compare as numbers", `{"key":"n","operator":"gt","value":"4.5"}`, yes},
		{"relative dates count from now", `{"key":"when","operator":"is_date_after","value":"-30d"}`, yes},
		{"between", `{"key":"n","operator":"between","value":[5,6]}`, yes},
		{"a later member of a filter wins", `{"key":"plan","value":"x","value":"pro"}`, yes},
		{"other members do not count", `{"key":"plan","value":"pro","label":"x","cohort_name":null}`, yes},

		{"absent: is_not_set", `{"key":"x","operator":"is_not_set"}`, yes},
		{"absent: is_set", `{"key":"x","operator":"is_set"}`, no},
		{"absent: is_not", `{"key":"x","operator":"is_not","value":"y"}`, yes},
		{"absent: not_icontains", `{"key":"x","operator":"not_icontains","value":"y"}`, yes},
		{"absent: not_icontains with a list", `{"key":"x","operator":"not_icontains","value":["y","z"]}`, yes},
		{"absent: not_regex", `{"key":"x","operator":"not_regex","value":"y"}`, yes},
		{"absent: exact", `{"key":"x","value":"y"}`, no},
		{"absent: icontains", `{"key":"x","operator":"icontains","value":"y"}`, no},
		{"absent: lt", `{"key":"x","operator":"lt","value":3}`, no},
		{"null is there", `{"key":"nil","operator":"is_set"}`, yes},

		{"a property of the person", `{"key":"email","type":"person","operator":"icontains","value":"@example.com"}`, yes},
		{"the event's are not the person's", `{"key":"plan","type":"person","operator":"is_set"}`, no},
		{"a property of the group", `{"key":"seats","type":"group","group_type_index":1,"operator":"gte","value":5}`, yes},
		{"the key of the group", `{"key":"$group_key","type":"group","group_type_index":1,"value":"acme"}`, yes},
		{"a group that does not exist has no properties", `{"key":"seats","type":"group","group_type_index":4,"operator":"is_not_set"}`, yes},
		{"a feature by its key", `{"key":"beta","type":"feature","value":"blue"}`, yes},
		{"a feature by its property", `{"key":"$feature/beta","type":"feature","value":"blue"}`, yes},
		{"a feature that is not there", `{"key":"alpha","type":"feature","operator":"is_set"}`, no},
		{"in a cohort", `{"key":"id","type":"cohort","value":7}`, yes},
		{"in a cohort, its id in text", `{"key":"id","type":"cohort","value":"7","operator":"in"}`, yes},
		{"in one of two cohorts", `{"key":"id","type":"cohort","value":[8,7]}`, yes},
		{"not in a cohort", `{"key":"id","type":"cohort","value":7,"operator":"not_in"}`, no},
		{"not in another", `{"key":"id","type":"cohort","value":8,"operator":"not_in"}`, yes},
		{"all people", `{"key":"id","type":"cohort","value":"all"}`, yes},
		{"a cohort without an answer", `{"key":"id","type":"cohort","value":9}`, unknown},
		{"one that settles it", `{"key":"id","type":"cohort","value":[9,7]}`, yes},

		{"an element's text", `{"key":"text","type":"element","value":"Buy"}`, yes},
		{"any of the texts", `{"key":"text","type":"element","operator":"icontains","value":["zz","UY"]}`, yes},
		{"none of the texts", `{"key":"text","type":"element","operator":"not_icontains","value":["zz","UY"]}`, no},
		{"a tag", `{"key":"tag_name","type":"element","value":"a"}`, yes},
		{"a selector", `{"key":"selector","type":"element","value":"body > a.btn"}`, yes},
		{"a selector that does not fit", `{"key":"selector","type":"element","value":"a > body"}`, no},

		{"a plugin's operator", `{"key":"ip","operator":"cidr/contains","value":"10.0.0.0/8"}`, yes},
		{"a value it rejects", `{"key":"ip","operator":"cidr/contains","value":"11.0.0.0/8"}`, no},
		{"a value without an answer", `{"key":"ip","operator":"cidr/contains","value":"12.0.0.0/8"}`, unknown},
		{"nothing to ask it about", `{"key":"x","operator":"cidr/contains","value":"12.0.0.0/8"}`, no},
	}
	env := &match.Env{Now: now, External: external{`"10.0.0.0/8"`: yes, `"11.0.0.0/8"`: no}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := actionmatch.Compile([]actionmatch.Step{filters(c.filter)}, actionmatch.CompileOptions{Operators: operators{}})
			if err != nil {
				t.Fatal(err)
			}
			s := new(actionmatch.EventView)
			s.Reset(&sdk.Event{Name: "paid", Properties: []byte(event), ElementsChain: chain})
			s.SetPerson([]byte(person))
			s.SetGroup(1, actionmatch.Group{Key: "acme", Properties: []byte(group)})
			s.SetGroup(4, actionmatch.Group{})
			s.SetCohort(7, yes)
			s.SetCohort(8, no)
			if got := m.Match(s, env); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			agree(t, m, s, env)
		})
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	click := &sdk.Event{
		Name: "$autocapture", Properties: []byte(`{"$current_url":"https://shop.example/Cart?x=1","plan":"pro"}`),
		ElementsChain: `span:text="Buy"nth-child="1";a:href="/checkout"text="Now"nth-child="1"`,
	}
	cases := []struct {
		name  string
		steps []actionmatch.Step
		want  match.Result
	}{
		{"no steps match nothing", nil, no},
		{"an empty step matches everything", []actionmatch.Step{{}}, yes},
		{"any step will do", []actionmatch.Step{{Event: "x"}, {Event: "$autocapture"}}, yes},
		{"names are equal or not", []actionmatch.Step{{Event: "$Autocapture"}}, no},
		{"names are not trimmed", []actionmatch.Step{{Event: "$autocapture "}}, no},
		{"a URL contains by default", []actionmatch.Step{{URL: "shop.example/C"}}, yes},
		{"a URL has case", []actionmatch.Step{{URL: "/cart"}}, no},
		{"percent is any run, underscore any character", []actionmatch.Step{{URL: "https://%example_Cart"}}, yes},
		{"exactly", []actionmatch.Step{{URL: "https://shop.example/Cart?x=1", URLMatching: "exact"}}, yes},
		{"exactly, and it is only a part", []actionmatch.Step{{URL: "/Cart", URLMatching: "exact"}}, no},
		{"a pattern anywhere", []actionmatch.Step{{URL: `Cart\?x=\d$`, URLMatching: "regex"}}, yes},
		{"a text is exact by default", []actionmatch.Step{{Text: "Bu"}}, no},
		{"a text contains without case", []actionmatch.Step{{Text: "bU", TextMatching: "contains"}}, yes},
		{"one element has all", []actionmatch.Step{{TagName: "a", Text: "Now", Href: "/checkout"}}, yes},
		{"two elements have it together", []actionmatch.Step{{TagName: "a", Text: "Buy"}}, no},
		{"the selector may be elsewhere", []actionmatch.Step{{Text: "Buy", Selector: "a"}}, yes},
		{"elements count whatever the event is called", []actionmatch.Step{{Event: "$autocapture", TagName: "b"}}, no},
		{"all conditions must hold", []actionmatch.Step{{Event: "$autocapture", URL: "/Cart", Selector: "a > span", Properties: filters(`{"key":"plan","value":"free"}`).Properties}}, no},
		{"all conditions hold", []actionmatch.Step{{Event: "$autocapture", URL: "/Cart", Selector: "a > span", Properties: filters(`{"key":"plan","value":"pro"}`).Properties}}, yes},
		{"a missing fact leaves it undecided", []actionmatch.Step{filters(`{"key":"x","type":"person","value":1}`)}, unknown},
		{"unless another condition fails", []actionmatch.Step{filters(`{"key":"x","type":"person","value":1}`, `{"key":"id","type":"cohort","value":3}`, `{"key":"plan","value":"free"}`)}, no},
		{"or another step fits", []actionmatch.Step{filters(`{"key":"x","type":"person","value":1}`), {Event: "$autocapture"}}, yes},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := actionmatch.Compile(c.steps, actionmatch.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := new(actionmatch.EventView)
			s.Reset(click)
			if got := m.Match(s, &match.Env{Now: now}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			agree(t, m, s, &match.Env{Now: now})
		})
	}
}

func TestURLConditionRequiresURL(t *testing.T) {
	t.Parallel()
	m := lenient(t, actionmatch.Step{URL: "%", URLMatching: "contains"}, actionmatch.Step{URL: "", URLMatching: "exact", Event: "x"})
	for _, properties := range []string{`{}`, ``, `[]`, `{"$current_url":""}`, `{"$current_url":7}`, `{"$current_url":null}`} {
		s := new(actionmatch.EventView)
		s.Reset(&sdk.Event{Name: "$pageview", Properties: []byte(properties)})
		if got := m.Match(s, &match.Env{}); got != no {
			t.Errorf("%s: %v", properties, got)
		}
		agree(t, m, s, &match.Env{})
	}
}

type cohorts []int64

func (c cohorts) HasCohort(id int64) bool {
	for _, have := range c {
		if have == id {
			return true
		}
	}
	return false
}

func TestCompileRejectsInvalidSteps(t *testing.T) {
	t.Parallel()
	ok := actionmatch.Step{Event: "x"}
	cases := []struct {
		name       string
		steps      []actionmatch.Step
		attr, code string
	}{
		{"a way to compare URLs", []actionmatch.Step{{URLMatching: "equals"}}, "steps__0__url_matching", "invalid_choice"},
		{"a way to compare texts", []actionmatch.Step{ok, {TextMatching: "Exact"}}, "steps__1__text_matching", "invalid_choice"},
		{"a way to compare hrefs", []actionmatch.Step{{Href: "/", HrefMatching: "like"}}, "steps__0__href_matching", "invalid_choice"},
		{"a pattern for URLs", []actionmatch.Step{{URL: "(", URLMatching: "regex"}}, "steps__0__url", "invalid_input"},
		{"a pattern for texts", []actionmatch.Step{{Text: "(?=a)", TextMatching: "regex"}}, "steps__0__text", "invalid_input"},
		{"a pattern for hrefs", []actionmatch.Step{{Href: "[", HrefMatching: "regex"}}, "steps__0__href", "invalid_input"},
		{"a selector", []actionmatch.Step{{Selector: "a, b"}}, "steps__0__selector", ""},
		{"the first of several", []actionmatch.Step{{Selector: "a:hover", URLMatching: "x"}, {Selector: "a,"}}, "steps__0__url_matching", "invalid_choice"},
		{"a filter that is no object", []actionmatch.Step{filters(`[]`)}, "steps__0__properties__0", "invalid_input"},
		{"a filter that is no JSON", []actionmatch.Step{filters(`{`)}, "steps__0__properties__0", "invalid_input"},
		{"a filter without a key", []actionmatch.Step{ok, filters(`{"key":"a","value":1}`, `{"value":1}`)}, "steps__1__properties__1__key", "required"},
		{"a key that is no text", []actionmatch.Step{filters(`{"key":1,"value":1}`)}, "steps__0__properties__0__key", "invalid"},
		{"a type", []actionmatch.Step{filters(`{"key":"a","type":"hogql","value":1}`)}, "steps__0__properties__0__type", "invalid_choice"},
		{"a type that is no text", []actionmatch.Step{filters(`{"key":"a","type":1,"value":1}`)}, "steps__0__properties__0__type", "invalid"},
		{"an operator", []actionmatch.Step{filters(`{"key":"a","operator":"like","value":1}`)}, "steps__0__properties__0__operator", "invalid_operator"},
		{"an operator no plugin brings", []actionmatch.Step{filters(`{"key":"a","operator":"geo/within","value":1}`)}, "steps__0__properties__0__operator", "invalid_operator"},
		{"a value a plugin cannot use", []actionmatch.Step{filters(`{"key":"a","operator":"cidr/contains","value":"wrong"}`)}, "steps__0__properties__0__value", "invalid_value"},
		{"a value that must be there", []actionmatch.Step{filters(`{"key":"a","operator":"gt"}`)}, "steps__0__properties__0__value", "invalid_value"},
		{"a pattern", []actionmatch.Step{filters(`{"key":"a","operator":"regex","value":"("}`)}, "steps__0__properties__0__value", "invalid_input"},
		{"a pattern in a list", []actionmatch.Step{filters(`{"key":"a","operator":"regex","value":["a","("]}`)}, "steps__0__properties__0__value", "invalid_input"},
		{"an empty list", []actionmatch.Step{filters(`{"key":"a","operator":"icontains","value":[]}`)}, "steps__0__properties__0__value", "invalid_value"},
		{"a list of too many tests", []actionmatch.Step{filters(`{"key":"a","operator":"icontains","value":[` + strings.Repeat(`"x",`, 500) + `"x"]}`)}, "steps__0__properties__0__value", "max_length"},
		{"a list of too many values", []actionmatch.Step{filters(`{"key":"a","value":[` + strings.Repeat(`"x",`, 10_000) + `"x"]}`)}, "steps__0__properties__0__value", "max_length"},
		{"a list for gt", []actionmatch.Step{filters(`{"key":"a","operator":"gt","value":[1]}`)}, "steps__0__properties__0__value", ""},
		{"a group without its type", []actionmatch.Step{filters(`{"key":"a","type":"group","value":1}`)}, "steps__0__properties__0__group_type_index", "required"},
		{"a group type that is no number", []actionmatch.Step{filters(`{"key":"a","type":"group","group_type_index":"x","value":1}`)}, "steps__0__properties__0__group_type_index", "invalid"},
		{"a key elements do not have", []actionmatch.Step{filters(`{"key":"class","type":"element","value":"x"}`)}, "steps__0__properties__0__key", "invalid_input"},
		{"an operator tags do not take", []actionmatch.Step{filters(`{"key":"tag_name","type":"element","operator":"regex","value":"x"}`)}, "steps__0__properties__0__operator", "invalid_operator"},
		{"a selector in a filter", []actionmatch.Step{filters(`{"key":"selector","type":"element","value":"a >"}`)}, "steps__0__properties__0__value", ""},
		{"a cohort that does not exist", []actionmatch.Step{filters(`{"key":"id","type":"cohort","value":[5,6]}`)}, "steps__0__properties__0__value", "does_not_exist"},
		{"a cohort without an id", []actionmatch.Step{filters(`{"key":"id","type":"cohort","value":"some"}`)}, "steps__0__properties__0__value", "invalid_value"},
		{"a cohort and nothing", []actionmatch.Step{filters(`{"key":"id","type":"cohort"}`)}, "steps__0__properties__0__value", "required"},
		{"an operator cohorts do not take", []actionmatch.Step{filters(`{"key":"id","type":"cohort","value":5,"operator":"gt"}`)}, "steps__0__properties__0__operator", "invalid_operator"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			opts := actionmatch.CompileOptions{Operators: operators{}, Cohorts: cohorts{5}}
			_, err := actionmatch.Compile(c.steps, opts)
			f := fault.From(err)
			if f == nil {
				t.Fatalf("no fault: %v", err)
			}
			if f.Kind != fault.Invalid || f.Attr != c.attr || c.code != "" && f.Code != c.code || f.Detail == "" {
				t.Errorf("%v at %s, code %s: %s", f.Kind, f.Attr, f.Code, f.Detail)
			}
			opts.Lenient = true
			m, err := actionmatch.Compile(c.steps, opts)
			if err != nil || fault.From(m.Problem()).Attr != c.attr {
				t.Fatalf("stored: %v, %v", err, m.Problem())
			}
			s := new(actionmatch.EventView)
			s.Reset(&sdk.Event{Name: "y", Properties: []byte(`{"a":1}`)})
			s.SetPerson(nil)
			s.SetGroup(0, actionmatch.Group{})
			if got := m.Match(s, &match.Env{}); got != no {
				t.Errorf("an invalid step matches: %v", got)
			}
			agree(t, m, s, &match.Env{})
		})
	}
}

func TestLenientCompileKeepsValidSteps(t *testing.T) {
	t.Parallel()
	m := lenient(t, actionmatch.Step{Selector: "a,"}, actionmatch.Step{Event: "paid"})
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: "paid"})
	if got := m.Match(s, &match.Env{}); got != yes || m.NeverMatches() {
		t.Errorf("match is %v, never %v", got, m.NeverMatches())
	}
	if steps := m.Steps(); len(steps) != 1 || steps[0].Event != "paid" {
		t.Errorf("steps are %+v", steps)
	}
	if !lenient(t).NeverMatches() || !lenient(t, actionmatch.Step{Selector: "a,"}).NeverMatches() {
		t.Error("nothing may match")
	}
}
