package match_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// FuzzCompile compiles arbitrary steps: rejected steps are rejected with a
// fault at a field of the steps and never matches when it was stored; what
// Match returns Explain returns, too.
func FuzzCompile(f *testing.F) {
	for _, v := range readVectors(f) {
		steps := v.Steps
		if v.Kind == "step" {
			steps = []actionmatch.Step{v.Step}
		}
		if v.Kind == "selector" {
			steps = []actionmatch.Step{{Selector: v.Selector}}
		}
		raw, _ := json.Marshal(steps)
		f.Add(raw, string(v.Event.Properties), v.Chain)
	}
	for _, filter := range []string{adaOnly, fiveSeats, inSeven, `{"key":"a","operator":"cidr/contains","value":"x"}`, `{"key":"a","operator":"regex","value":["(","a"]}`, `[]`, `{"type":"cohort","value":[["all"]]}`} {
		raw, _ := json.Marshal([]actionmatch.Step{filters(filter)})
		f.Add(raw, `{"$group_2":"acme","a":1}`, "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, properties, chain string) {
		var steps []actionmatch.Step
		if json.Unmarshal(raw, &steps) != nil {
			return
		}
		_, err := actionmatch.Compile(steps, actionmatch.CompileOptions{Operators: operators{}})
		if problem := fault.From(err); err != nil && (problem == nil || problem.Kind != fault.Invalid || !strings.HasPrefix(problem.Attr, "steps__")) {
			t.Fatalf("refused with %v", err)
		}
		m := lenient(t, steps...)
		if (m.Problem() == nil) != (err == nil) {
			t.Fatalf("refused with %v, stored with %v", err, m.Problem())
		}
		m.Needs()
		s := new(actionmatch.EventView)
		s.Reset(&sdk.Event{Name: "e", DistinctID: "ada", Properties: []byte(properties), ElementsChain: chain})
		agree(t, m, s, &match.Env{Now: now})
		if _, err := json.Marshal(m.Explain(s, &match.Env{Now: now})); err != nil {
			t.Fatalf("an explanation cannot be written: %v", err)
		}
		found := match.False
		actionmatch.NewIndex([]actionmatch.Entry{{ID: 1, Matcher: m}}).MatchEach(s, &match.Env{Now: now}, func(_ int64, r match.Result) { found = r })
		if want := m.Match(s, &match.Env{Now: now}); found != want {
			t.Fatalf("the index finds %v, Match %v", found, want)
		}
	})
}

// FuzzReadSteps reads arbitrary client input: accepted steps can be
// compiled, or is refused at a field of the steps.
func FuzzReadSteps(f *testing.F) {
	for _, body := range []string{
		`{"steps":[{"event":"a","url":null,"properties":[{"key":"a","value":1}]}]}`, `{"steps":[{"properties":{"a__gt":1,"__":2,"b__":3,"c__x":null}}]}`,
		`{"steps":[{"properties":{"key":"a","value":[1,"x"]}}]}`, `{"steps":[{"properties":{"key":"a"}}]}`, `{"steps":[1,{"text":2}]}`, `{"steps":"[{}]"}`, `{}`,
	} {
		f.Add([]byte(body))
	}
	server := fiber.New()
	f.Fuzz(func(t *testing.T, body []byte) {
		c := server.AcquireCtx(&fasthttp.RequestCtx{})
		defer server.ReleaseCtx(c)
		c.Request().Header.SetContentType(fiber.MIMEApplicationJSON)
		c.Request().SetBody(body)
		fields, err := web.Decode(c, web.Limits{InflatedBytes: 1 << 20, Depth: 64})
		if err != nil {
			return
		}
		steps := actions.ReadSteps(fields)
		if err := fields.Err(); err != nil {
			if problem := fault.From(err); problem == nil || !strings.HasPrefix(problem.Attr, "steps") {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if len(steps.Value) > 0 && !steps.Set {
			t.Fatal("steps out of nothing")
		}
		err = lenient(t, steps.Value...).Problem()
		if problem := fault.From(err); err != nil && !strings.HasPrefix(problem.Attr, "steps__") {
			t.Fatalf("stored with %v", err)
		}
	})
}

// TestExplainAgreesWithMatch makes definitions and events of few words, so that all
// combinations come up, some facts being unknown.
func TestExplainAgreesWithMatch(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[match.Result]int{}
	s := new(actionmatch.EventView)
	for range 4000 {
		var steps []actionmatch.Step
		for range rnd.IntN(3) {
			steps = append(steps, randomStep(rnd))
		}
		m := lenient(t, steps...)
		ev := &sdk.Event{
			Name: pick(rnd, "a", "b"), DistinctID: "ada", ElementsChain: pick(rnd, "", `a:text="x"href="/x"`, `a:text="x";b:href="/x"`),
			Properties: fmt.Appendf(nil, `{"$current_url":%q,"p":%q}`, pick(rnd, "", "/x", "/y"), pick(rnd, "x", "y")),
		}
		s.Reset(ev)
		if rnd.IntN(2) == 0 {
			s.SetPerson([]byte(pick(rnd, `{}`, `{"p":"x"}`)))
		}
		if rnd.IntN(2) == 0 {
			s.SetCohort(1, pick(rnd, yes, no, unknown))
		}
		env := &match.Env{Now: now, External: external{`"x"`: pick(rnd, yes, no, unknown)}}
		seen[m.Match(s, env)]++
		agree(t, m, s, env)
		if t.Failed() {
			t.Fatalf("steps %s, event %s", show(steps), show(ev))
		}
	}
	for _, r := range []match.Result{yes, no, unknown} {
		if seen[r] < 100 {
			t.Errorf("%v came up %d times only", r, seen[r])
		}
	}
}

func randomStep(rnd *rand.Rand) actionmatch.Step {
	step := actionmatch.Step{
		Event: pick(rnd, "", "", "a"), URL: pick(rnd, "", "", "/x"), URLMatching: pick(rnd, "", "exact", "regex"),
		TagName: pick(rnd, "", "", "a", "b"), Text: pick(rnd, "", "", "x"), Href: pick(rnd, "", "", "/x", "/y"), HrefMatching: pick(rnd, "", "contains"),
		Selector: pick(rnd, "", "", "", "b", "b > a", "a,"),
	}
	for range rnd.IntN(3) {
		step.Properties = append(step.Properties, json.RawMessage(pick(rnd,
			`{"key":"p","value":"x"}`, `{"key":"p","operator":"is_not","value":"x"}`, `{"key":"p","type":"person","value":"x"}`,
			`{"key":"p","type":"person","operator":"cidr/contains","value":"x"}`, `{"key":"p","operator":"cidr/contains","value":"x"}`,
			`{"key":"p","type":"group","group_type_index":1,"operator":"is_not_set"}`, `{"key":"text","type":"element","operator":"not_regex","value":["x","y"]}`,
			`{"type":"cohort","value":1}`, `{"type":"cohort","value":[1,2],"operator":"not_in"}`)))
	}
	return step
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }
