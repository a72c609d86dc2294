package match_test

import (
	"encoding/json"
	"fmt"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// pageview is an event as a browser sends it.
func pageview(tb testing.TB) *sdk.Event {
	tb.Helper()
	properties := map[string]any{
		"$current_url": "https://shop.example/products/42?ref=mail", "$host": "shop.example", "$pathname": "/products/42",
		"$browser": "Firefox", "$browser_version": 128, "$os": "Linux", "$device_type": "Desktop", "$screen_height": 1080,
		"$screen_width": 1920, "$referrer": "https://search.example/", "$lib": "web", "$lib_version": "1.150.0",
		"$session_id": "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "plan": "pro", "amount": 12.5, "tags": []string{"a", "b"},
	}
	for i := range 24 {
		properties[fmt.Sprintf("custom_%02d", i)] = fmt.Sprintf("value number %d", i)
	}
	raw, err := json.Marshal(properties)
	if err != nil {
		tb.Fatal(err)
	}
	return &sdk.Event{
		Name: "$pageview", DistinctID: "ada", Properties: raw,
		ElementsChain: `span.label:nth-child="1"nth-of-type="1"text="Add to basket";button.btn.btn-primary:attr__class="btn btn-primary"attr__id="cta"attr_id="cta"nth-child="2"nth-of-type="1"text="Add to basket";form.buy:attr__class="buy"nth-child="1"nth-of-type="1";main:nth-child="1"nth-of-type="1";body:nth-child="2"nth-of-type="1"`,
	}
}

// thousand are definitions, ten of which are for events of one name.
func thousand(tb testing.TB, name string, own func(i int) actionmatch.Step) *actionmatch.Index {
	tb.Helper()
	var entries []actionmatch.Entry
	for i := range 1000 {
		step := own(i)
		if step.Event = fmt.Sprintf("event %d", i); i%100 == 0 {
			step.Event = name
		}
		entries = append(entries, actionmatch.Entry{ID: int64(i), Matcher: lenient(tb, step)})
	}
	return actionmatch.NewIndex(entries)
}

func mixed(i int) actionmatch.Step {
	switch i / 100 % 5 {
	case 0:
		return actionmatch.Step{URL: "/checkout/"}
	case 1:
		return actionmatch.Step{URL: `/products/\d+/reviews`, URLMatching: "regex"}
	case 2:
		return filters(`{"key":"plan","value":["free","team"]}`, `{"key":"amount","operator":"gt","value":5}`)
	case 3:
		return actionmatch.Step{TagName: "button", Text: "Buy now", Selector: "main > form.buy button#cta"}
	}
	return filters(`{"key":"custom_23","operator":"icontains","value":"nothing"}`, `{"key":"x","operator":"is_set"}`)
}

func benchmark(b *testing.B, x *actionmatch.Index, want int) {
	b.Helper()
	ev, s, env := pageview(b), new(actionmatch.EventView), &match.Env{Now: now}
	found := 0
	count := func(int64, match.Result) { found++ }
	s.Reset(ev)
	x.MatchEach(s, env, count)
	found = 0
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(ev)
		x.MatchEach(s, env, count)
	}
	if found != want*b.N {
		b.Fatalf("%d found in %d rounds", found, b.N)
	}
}

// BenchmarkMatchNone matches one event against 1,000 actions, 10 of them on
// its name, and fits none.
func BenchmarkMatchNone(b *testing.B) { benchmark(b, thousand(b, "$pageview", mixed), 0) }

// BenchmarkMatchAll is the same with 10 that fit.
func BenchmarkMatchAll(b *testing.B) {
	benchmark(b, thousand(b, "$pageview", func(i int) actionmatch.Step {
		return actionmatch.Step{URL: "/products/", TagName: "button", Properties: filters(`{"key":"plan","value":"pro"}`).Properties}
	}), 10)
}

// BenchmarkMatchOtherName is for events that no action asks for: nothing is
// read of them.
func BenchmarkMatchOtherName(b *testing.B) {
	benchmark(b, thousand(b, "$pageleave", func(i int) actionmatch.Step { return actionmatch.Step{URL: "/x"} }), 0)
}

// BenchmarkMatchAnyName is 1,000 actions for events of any name.
func BenchmarkMatchAnyName(b *testing.B) {
	var entries []actionmatch.Entry
	for i := range 1000 {
		entries = append(entries, actionmatch.Entry{ID: int64(i), Matcher: lenient(b, mixed(i*100))})
	}
	benchmark(b, actionmatch.NewIndex(entries), 0)
}

// TestMatchingAllocatesNothing leaves out regular expressions: their machines
// come from a pool that the race detector empties at random.
func TestMatchingAllocatesNothing(t *testing.T) {
	plain := func(i int) actionmatch.Step {
		step := mixed(i)
		if step.URLMatching == "regex" {
			step.URLMatching = "exact"
		}
		return step
	}
	x, ev, s, env := thousand(t, "$pageview", plain), pageview(t), new(actionmatch.EventView), &match.Env{Now: now}
	none := func(int64, match.Result) { t.Error("something fits") }
	round := func() {
		s.Reset(ev)
		x.MatchEach(s, env, none)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
