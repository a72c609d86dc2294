package decide_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// geoPlugin is a plugin whose operator geo/at reads two properties, and passes
// when their object is the filter's value.
type geoPlugin struct {
	known map[string]match.Result // by the object
	asked [][]string
	waits []time.Duration
}

func (c *geoPlugin) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Source: "compass", Missing: match.False, Equivalent: "value == property", Compile: func(value []byte) (match.Compiled, error) {
		var program string
		_ = json.Unmarshal(value, &program)
		return match.Compiled{Program: match.Program(program), Reads: []string{"lat", "lng"}, Open: program == "not compiled"}, nil
	}}, id == "geo/at"
}

func (c *geoPlugin) Known(_ match.Program, v *match.Value, _ time.Time) (match.Result, bool) {
	res, ok := c.known[v.Content()]
	return res, ok
}

func (c *geoPlugin) MatchPairs(ctx context.Context, _ time.Time, pairs []match.Pair, results []match.Result) {
	var asked []string
	for i, p := range pairs {
		asked = append(asked, string(p.Program)+" of "+p.Value.Content())
		results[i] = match.Of(string(p.Program) == p.Value.Content())
	}
	c.asked = append(c.asked, asked)
	if end, ok := ctx.Deadline(); ok {
		c.waits = append(c.waits, time.Until(end))
	}
}

// places are condition sets with geo/at and the given values, in turn.
func places(values ...string) string {
	var sets []string
	for _, v := range values {
		value, _ := json.Marshal(v)
		sets = append(sets, `{"properties":[{"key":"place","operator":"geo/at","value":`+string(value)+`}]}`)
	}
	return `{"groups":[` + strings.Join(sets, ",") + `]}`
}

func (c *geoPlugin) decide(t *testing.T, lookups decide.Lookups, properties string, defs ...eval.Definition) map[string]any {
	t.Helper()
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, &memorySource{stored: eval.ProjectDefinitions{Flags: defs}}, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	lookups.Matchers = c
	d, err := decide.NewDecider(cfg, snapshots, lookups, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := person(properties)
	q.DistinctID = "user-42"
	out := map[string]any{}
	for _, d := range d.Decide(t.Context(), 1, &q) {
		if out[d.Key] = d.Value(); d.Failed != eval.CauseNone {
			out[d.Key] = d.Failed.Code()
		}
	}
	return out
}

func TestPluginReadsSeveralProperties(t *testing.T) {
	t.Parallel()
	c := &geoPlugin{}
	stored := around(&memoryStore{people: map[string]string{"user-42": `{"lat":1.5,"lng":7}`}})
	got := c.decide(t, stored, `{"lng":2}`,
		flagstest.Define(1, "here", places(`{"lat":1.5,"lng":2}`)), flagstest.Define(2, "there", places(`{"lat":1.5,"lng":7}`)), flagstest.Define(3, "open", places("not compiled")))
	want(t, got, map[string]any{"here": true, "there": false, "open": "operator_unavailable"})
	if len(c.asked) != 1 || len(c.asked[0]) != 2 {
		t.Errorf("asked %q", c.asked)
	}
	// Without these properties the operator is called, too.
	c = &geoPlugin{}
	want(t, c.decide(t, decide.Lookups{}, `{}`, flagstest.Define(1, "nowhere", places(`{}`))), map[string]any{"nowhere": true})
}

// The pairs of all condition sets of a flag are in one call within the timeout.
func TestOneCallForAllSetsOfAFlag(t *testing.T) {
	t.Parallel()
	c := &geoPlugin{}
	got := c.decide(t, decide.Lookups{}, `{"lat":1,"lng":2}`, flagstest.Define(1, "third", places("a", "b", `{"lat":1,"lng":2}`)))
	want(t, got, map[string]any{"third": true})
	if len(c.asked) != 1 || !slices.Equal(c.asked[0], []string{`a of {"lat":1,"lng":2}`, `b of {"lat":1,"lng":2}`, `{"lat":1,"lng":2} of {"lat":1,"lng":2}`}) {
		t.Errorf("asked %q", c.asked)
	}
	for _, w := range c.waits {
		if w > decide.DefaultConfig().PluginTimeout {
			t.Errorf("waits %s", w)
		}
	}
}

func TestKnownResultsNeedNoCall(t *testing.T) {
	t.Parallel()
	c := &geoPlugin{known: map[string]match.Result{`{"lat":1,"lng":2}`: match.True}}
	want(t, c.decide(t, decide.Lookups{}, `{"lat":1,"lng":2}`, flagstest.Define(1, "known", places("a"))), map[string]any{"known": true})
	c.known[`{"lat":1,"lng":2}`] = match.Unknown // no result
	want(t, c.decide(t, decide.Lookups{}, `{"lat":1,"lng":2}`, flagstest.Define(1, "known", places("a"))), map[string]any{"known": "operator_unavailable"})
	if len(c.asked) != 0 {
		t.Errorf("asked %q", c.asked)
	}
}

// recordingRound is a PluginRound over a geoPlugin.
type recordingRound struct {
	*geoPlugin
	noted, answered []match.Pair
}

func (r *recordingRound) Match(p match.Program, v *match.Value) match.Result {
	for _, a := range r.answered {
		if a.Program == p && a.Value.Same(v) {
			return match.Of(string(p) == v.Content())
		}
	}
	r.noted = append(r.noted, match.Pair{Program: p, Value: v.Clone()})
	return match.Unknown
}

func (r *recordingRound) Ask(context.Context) bool {
	r.answered, r.noted = append(r.answered, r.noted...), nil
	return len(r.answered) > 0
}

// Without a decider, a PluginRound calls plugins between two evaluations.
func TestEvaluateWithPluginRound(t *testing.T) {
	t.Parallel()
	set := eval.Compile([]eval.Definition{flagstest.Define(1, "here", places(`{"lat":1}`))}, nil, nil, eval.CompileOptions{Operators: &geoPlugin{}})
	var round eval.PluginRound = &recordingRound{}
	known := &eval.KnownProperties{PersonProperties: json.RawMessage(`{"lat":1}`), Plugins: round}
	q := &eval.Request{DistinctID: "u"}
	if d := set.Evaluate(q, known, flagstest.Now)[0]; d.Failed != eval.CauseOperator {
		t.Errorf("first: %+v", d)
	}
	if !round.Ask(t.Context()) {
		t.Fatal("no pair was collected")
	}
	if d := set.Evaluate(q, known, flagstest.Now)[0]; !d.On {
		t.Errorf("second: %+v", d)
	}
}

func person(properties string) eval.Request {
	return eval.Request{PersonProperties: json.RawMessage(properties)}
}

func want(t *testing.T, got, want map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
