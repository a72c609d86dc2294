package match_test

import (
	"encoding/json"
	"os"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// vector is one case of testdata/elements.json: a selector, a step or the
// steps of an action against one event.
type vector struct {
	ID       string
	Kind     string
	Chain    string `json:"elements_chain"`
	Selector string
	Step     actionmatch.Step
	Steps    []actionmatch.Step
	Event    struct {
		Event            string
		Properties       json.RawMessage
		PersonProperties json.RawMessage `json:"person_properties"`
	}
	Expected bool
}

// superseded are vectors that say what readers of an older selector grammar
// answer. Ours also compares how attributes start and end, so it differs.
var superseded = map[string]bool{"sel-unsupported-op": true}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			steps := v.Steps
			switch v.Kind {
			case "selector":
				steps = []actionmatch.Step{{Selector: v.Selector}}
				if v.Selector == "" {
					filter := json.RawMessage(`{"key":"selector","type":"element","value":""}`)
					steps = []actionmatch.Step{{Properties: []json.RawMessage{filter}}}
				}
			case "step":
				steps = []actionmatch.Step{v.Step}
			}
			m := lenient(t, steps...)
			s := new(actionmatch.EventView)
			s.Reset(&sdk.Event{Name: v.Event.Event, Properties: v.Event.Properties, ElementsChain: v.Chain})
			s.SetPerson(v.Event.PersonProperties)
			if got := m.Match(s, &match.Env{}); got != match.Of(v.Expected) != superseded[v.ID] {
				t.Errorf("match is %v, not %v", got, v.Expected)
			}
			agree(t, m, s, &match.Env{})
		})
	}
}

func readVectors(tb testing.TB) []vector {
	tb.Helper()
	raw, err := os.ReadFile("testdata/elements.json")
	if err != nil {
		tb.Fatal(err)
	}
	var all struct{ Vectors, Actions []vector }
	if err := json.Unmarshal(raw, &all); err != nil {
		tb.Fatal(err)
	}
	if len(all.Vectors) < 91 || len(all.Actions) < 3 {
		tb.Fatal("vectors are missing")
	}
	return append(all.Vectors, all.Actions...)
}

// lenient compiles stored steps, which never fails.
func lenient(tb testing.TB, steps ...actionmatch.Step) *actionmatch.Matcher {
	tb.Helper()
	m, err := actionmatch.Compile(steps, actionmatch.CompileOptions{Lenient: true, Operators: operators{}})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// agree checks that Explain returns the result of Match, as a whole and step by
// step, and that a step is the conjunction of its fields.
func agree(tb testing.TB, m *actionmatch.Matcher, s *actionmatch.EventView, env *match.Env) {
	tb.Helper()
	want := m.Match(s, env)
	e := m.Explain(s, env)
	if got := result(e.Matches); got != want {
		tb.Errorf("Match returns %v, Explain %v: %s", want, got, show(e))
	}
	whole := ordered(match.False)
	for _, step := range e.Steps {
		all := ordered(match.True)
		for _, f := range step.Fields {
			r := result(f.Matches)
			all = min(all, ordered(r))
			if (f.Reason == "") != (r == match.True) {
				tb.Errorf("%s: %v with the reason %q", f.Attr, r, f.Reason)
			}
		}
		if got := result(step.Matches); ordered(got) != all && len(step.Fields) > 0 {
			tb.Errorf("a step is %v with the fields %s", got, show(step.Fields))
		}
		whole = max(whole, ordered(result(step.Matches)))
	}
	if len(e.Steps) > 0 && whole != ordered(want) {
		tb.Errorf("Match returns %v with the steps %s", want, show(e.Steps))
	}
}

// ordered are results such that and is min and or is max.
func ordered(r match.Result) match.Result {
	return map[match.Result]match.Result{match.False: 1, match.Unknown: 2, match.True: 3}[r]
}

func result(b *bool) match.Result {
	if b == nil {
		return match.Unknown
	}
	return match.Of(*b)
}

func show(v any) string {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// operators are those a plugin brings in these tests.
type operators struct{}

func (operators) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{
		Missing: match.False,
		Compile: func(value []byte) (match.Compiled, error) {
			if string(value) == `"wrong"` {
				return match.Compiled{}, errWrong
			}
			return match.Compiled{Program: match.Program(value)}, nil
		},
	}, id == "cidr/contains"
}

// external answers for them.
type external map[match.Program]match.Result

func (e external) Match(p match.Program, _ *match.Value) match.Result { return e[p] }
