package match_test

import (
	"slices"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

func matching(x *actionmatch.Index, ev *sdk.Event) (fit, open []int64) {
	s := new(actionmatch.EventView)
	s.Reset(ev)
	x.MatchEach(s, &match.Env{}, func(id int64, r match.Result) {
		if r == match.True {
			fit = append(fit, id)
		} else {
			open = append(open, id)
		}
	})
	slices.Sort(fit)
	return fit, open
}

func TestIndex(t *testing.T) {
	t.Parallel()
	x := actionmatch.NewIndex([]actionmatch.Entry{
		{ID: 1, Matcher: lenient(t, actionmatch.Step{Event: "paid"})},
		{ID: 2, Matcher: lenient(t, actionmatch.Step{Event: "paid"}, actionmatch.Step{Event: "paid", URL: "x"}, actionmatch.Step{Event: "left"})},
		{ID: 3, Matcher: lenient(t, actionmatch.Step{Event: "paid"}, actionmatch.Step{URL: "/shop"})},
		{ID: 4, Matcher: lenient(t, actionmatch.Step{URL: "/shop"})},
		{ID: 5, Matcher: lenient(t)},
		{ID: 6, Matcher: lenient(t, actionmatch.Step{Selector: "a,"}, actionmatch.Step{Event: "left"})},
		{ID: 7, Matcher: lenient(t, actionmatch.Step{Selector: "a,"})},
		{ID: 8, Matcher: lenient(t, filters(`{"key":"x","type":"person","value":1}`))},
	})
	cases := []struct {
		name string
		ev   sdk.Event
		fit  []int64
	}{
		{"each once, however many steps fit", sdk.Event{Name: "paid", Properties: []byte(`{"$current_url":"/shop x"}`)}, []int64{1, 2, 3, 4}},
		{"only those of the name", sdk.Event{Name: "left"}, []int64{2, 6}},
		{"those of any name", sdk.Event{Name: "other", Properties: []byte(`{"$current_url":"/shop"}`)}, []int64{3, 4}},
		{"none", sdk.Event{Name: "other"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fit, open := matching(x, &c.ev)
			if !slices.Equal(fit, c.fit) || !slices.Equal(open, []int64{8}) {
				t.Errorf("fit %v, open %v", fit, open)
			}
		})
	}
	if x.Len() != 6 || !x.Has("other") {
		t.Errorf("%d definitions, other: %v", x.Len(), x.Has("other"))
	}
	var none *actionmatch.Index
	if fit, open := matching(none, &cases[0].ev); fit != nil || open != nil || none.Has("paid") || none.Len() != 0 {
		t.Error("a nil index must be empty")
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	x := actionmatch.NewIndex([]actionmatch.Entry{
		{ID: 1, Matcher: lenient(t, actionmatch.Step{Event: "a", URL: "x", Properties: filters(
			`{"key":"plan","value":1}`, `{"key":"email","type":"person","value":1}`, `{"key":"email","type":"person","operator":"cidr/contains","value":1}`,
			`{"key":"seats","type":"group","group_type_index":2,"value":1}`, `{"key":"id","type":"cohort","value":[3,1,3]}`, `{"key":"beta","type":"feature","value":1}`).Properties})},
		{ID: 2, Matcher: lenient(t, actionmatch.Step{Event: "b", Selector: "a"})},
	})
	n := x.Needs("a")
	if !slices.Equal(n.Event, []string{"$current_url", "$feature/beta", "plan"}) || !slices.Equal(n.Person, []string{"email"}) ||
		!slices.Equal(n.Groups[2], []string{"seats"}) || !slices.Equal(n.Cohorts, []int64{1, 3}) ||
		!slices.Equal(n.Operators, []string{"cidr/contains"}) || n.Elements || !n.NeedsLookup() {
		t.Errorf("a needs %+v", n)
	}
	if n = x.Needs("b"); !n.Elements || n.NeedsLookup() {
		t.Errorf("b needs %+v", n)
	}
	if n = x.Needs("c"); n.Elements || n.NeedsLookup() || n.Event != nil {
		t.Errorf("c needs %+v", n)
	}
}

func TestStepConditions(t *testing.T) {
	t.Parallel()
	m := lenient(t,
		actionmatch.Step{Event: "a", URL: "x", Properties: filters(
			`{"key":"email","type":"person","operator":"min","value":1}`, `{"key":"plan","operator":"cidr/contains","value":"1"}`, `{"key":"n","value":[1]}`,
			`{"type":"cohort","value":["all",4],"operator":"not_in"}`).Properties},
		actionmatch.Step{Href: "/", URL: "y", URLMatching: "regex"})
	steps := m.Steps()
	first, second := steps[0], steps[1]
	if first.Event != "a" || first.URL != "x" || first.URLMatching != match.Contains || first.HasElements() || len(first.Filters) != 4 {
		t.Errorf("first: %+v", first)
	}
	f := first.Filters
	if f[0].Source != actionmatch.FromEvent || f[0].Operator != "exact" || string(f[0].Value) != "[1]" ||
		f[1].Operator != "gte" || f[2].Source != actionmatch.FromCohort || !f[2].Negate || !f[2].AllPersons || f[2].Cohorts[0] != 4 || !f[3].External {
		t.Errorf("filters: %+v", f)
	}
	if second.Event != "" || second.URLMatching != match.Regex || !second.HasElements() {
		t.Errorf("second: %+v", second)
	}
}
