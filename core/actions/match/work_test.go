package match_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// soon is a generous bound of the time of a test on a slow machine.
const soon = time.Minute

// longURL is an event with a URL of n bytes.
func longURL(n int) *sdk.Event {
	return &sdk.Event{Name: "e", Properties: json.RawMessage(`{"$current_url":"` + strings.Repeat("a", n) + `"}`)}
}

func TestExpensiveActionsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	expensive := lenient(t, actionmatch.Step{Event: "e", URL: "(a?){1000}!$", URLMatching: "regex"})
	cheap := lenient(t, actionmatch.Step{Event: "e"})
	underscores := lenient(t, actionmatch.Step{Event: "e", URL: strings.Repeat("_", 20_000) + "b"})
	var entries []actionmatch.Entry
	for i := range 50 {
		entries = append(entries, actionmatch.Entry{ID: int64(i), Matcher: expensive})
	}
	entries = append(entries, actionmatch.Entry{ID: 100, Matcher: underscores}, actionmatch.Entry{ID: 101, Matcher: cheap})
	var over []int64
	sources := &actionmatch.Sources{OverBudget: func(projectID, id int64) { over = append(over, projectID*1000+id) }}
	began := time.Now()
	found, err := actionmatch.NewIndex(entries).MatchEvents(t.Context(), 7, []*sdk.Event{longURL(500 << 10)}, sources)
	if err != nil || len(found) != 1 || found[0].DefinitionID != 101 {
		t.Errorf("%+v, %v", found, err)
	}
	if len(over) != 50 || !slices.Contains(over, 7049) || slices.Contains(over, 7100) {
		t.Errorf("over budget: %v", over)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %s", took)
	}
}

func TestWorkOfOneEventIsBounded(t *testing.T) {
	t.Parallel()
	var entries []actionmatch.Entry
	for i := range 40 {
		entries = append(entries, actionmatch.Entry{ID: int64(i), Matcher: lenient(t, actionmatch.Step{Event: "e", URL: fmt.Sprintf("b%d", i)})})
	}
	env, undecided := &match.Env{Budget: new(match.Budget)}, 0
	var view actionmatch.EventView
	view.Reset(longURL(1 << 20))
	actionmatch.NewIndex(entries).MatchEach(&view, env, func(_ int64, r match.Result) {
		if r == match.Unknown {
			undecided++
		}
	})
	if undecided != 40-7 { // 8,000,000 units, a million each
		t.Errorf("%d undecided", undecided)
	}
}

func TestMeterBoundsManyEvents(t *testing.T) {
	t.Parallel()
	m, env := lenient(t, actionmatch.Step{Event: "e", URL: "b"}), &match.Env{}
	meter := actionmatch.NewMeter(env)
	var view actionmatch.EventView
	ev := longURL(1 << 20)
	for range 100 {
		view.Reset(ev)
		meter.Begin()
		meter.Over(m.Match(&view, env))
	}
	// 20 million units at once, then 200,000 per event of a million.
	if n := meter.Count(); n < 50 || n > 80 {
		t.Errorf("%d of 100 events are undecided", n)
	}
	for range 100 {
		meter.Begin()
	}
	if view.Reset(ev); m.Match(&view, env) != match.False {
		t.Error("nothing was saved")
	}
}

// TestStoredActionsOverTheLimit have no steps that match, and compile nothing.
func TestStoredActionsOverTheLimit(t *testing.T) {
	t.Parallel()
	began := time.Now()
	steps := []actionmatch.Step{{Event: "e", URL: strings.Repeat("(a?){1000}", 500), URLMatching: "regex"}, {Event: "e"}}
	m, err := actionmatch.Compile(steps, actionmatch.CompileOptions{Lenient: true})
	if err != nil || !m.NeverMatches() || m.Problem() == nil || m.Patterns() != 0 {
		t.Errorf("%v, problem %.100v", err, m.Problem())
	}
	if _, err := actionmatch.Compile(steps, actionmatch.CompileOptions{}); err == nil {
		t.Error("it can be saved")
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %s", took)
	}
	var view actionmatch.EventView
	view.Reset(longURL(10))
	if e := m.Explain(&view, &match.Env{}); e.Matches == nil || *e.Matches || !strings.Contains(e.Steps[0].Fields[0].Reason, "too large") {
		t.Errorf("matches %v, reason %.100q", e.Matches, e.Steps[0].Fields[0].Reason)
	}
}

func TestExplainSaysWhatIsTooExpensive(t *testing.T) {
	t.Parallel()
	m, env := lenient(t, actionmatch.Step{Event: "e", URL: "(a?){1000}!$", URLMatching: "regex"}), &match.Env{}
	actionmatch.NewMeter(env).Begin()
	var view actionmatch.EventView
	view.Reset(longURL(10 << 10))
	e := m.Explain(&view, env)
	if f := e.Steps[0].Fields[1]; e.Matches != nil || f.Matches != nil || !strings.Contains(f.Reason, "more work") {
		t.Errorf("%+v", f)
	}
}
