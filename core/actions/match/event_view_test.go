package match_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// town answers about people and groups and counts the questions.
type town struct {
	persons, groups, types, cohorts int
	fails                           error
}

func (w *town) Properties(_ context.Context, _ int64, distinctID string) ([]byte, bool, error) {
	w.persons++
	return []byte(`{"email":"` + distinctID + `@example.com"}`), distinctID != "missing", w.fails
}

func (w *town) GroupProperties(_ context.Context, _ int64, groupType, groupKey string) ([]byte, bool, error) {
	w.groups++
	return []byte(`{"seats":5}`), groupType == "company" && groupKey == "acme", w.fails
}

func (w *town) GroupTypes(context.Context, int64) (map[string]int, error) {
	w.types++
	return map[string]int{"company": 2}, w.fails
}

func (w *town) InCohort(_ context.Context, _, cohortID int64, distinctID string) (match.Result, error) {
	w.cohorts++
	return match.Of(cohortID == 7 && distinctID == "ada"), w.fails
}

const (
	adaOnly   = `{"key":"email","type":"person","value":"ada@example.com"}`
	noMail    = `{"key":"email","type":"person","operator":"is_not_set"}`
	fiveSeats = `{"key":"seats","type":"group","group_type_index":2,"value":5}`
	noSeats   = `{"key":"seats","type":"group","group_type_index":2,"operator":"is_not_set"}`
	acme      = `{"key":"$group_key","type":"group","group_type_index":2,"value":"acme"}`
	inSeven   = `{"key":"id","type":"cohort","value":7}`
)

func TestFacts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, distinctID, properties string
		filters                      []string
		want                         match.Result
	}{
		{"the person by the distinct id", "ada", `{}`, []string{adaOnly}, yes},
		{"a person that does not exist has no properties", "missing", `{}`, []string{noMail}, yes},
		{"the group as it was stored", "ada", `{"$group_2":"acme"}`, []string{fiveSeats, acme}, yes},
		{"the group as it was sent", "ada", `{"$groups":{"company":"acme"}}`, []string{fiveSeats, acme}, yes},
		{"a group that does not exist has no properties", "ada", `{"$group_2":"other"}`, []string{noSeats}, yes},
		{"no group of that type", "ada", `{"$groups":{"team":"acme"}}`, []string{noSeats}, yes},
		{"no group at all", "ada", `{}`, []string{noSeats}, yes},
		{"no group of a number", "ada", `{"$groups":["acme"]}`, []string{noSeats}, yes},
		{"an unknown group type", "ada", `{"$group_3":"x"}`, []string{`{"key":"a","type":"group","group_type_index":3,"operator":"is_not_set"}`}, yes},
		{"a group key that is a number", "ada", `{"$group_2":12}`, []string{`{"key":"$group_key","type":"group","group_type_index":2,"value":"12"}`}, yes},
		{"a member", "ada", `{}`, []string{inSeven}, yes},
		{"no member", "bob", `{}`, []string{inSeven}, no},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &town{}
			s := new(actionmatch.EventView)
			s.Reset(&sdk.Event{Name: "e", DistinctID: c.distinctID, Properties: []byte(c.properties)})
			s.SetLookup(actionmatch.NewFacts(t.Context(), 1, w, w))
			m := lenient(t, filters(c.filters...))
			if got := m.Match(s, &match.Env{}); got != c.want {
				t.Errorf("got %v", got)
			}
			agree(t, m, s, &match.Env{})
			if s.Missing().Any() {
				t.Errorf("wanted %+v", s.Missing())
			}
		})
	}
}

func TestFactsReadOncePerBatch(t *testing.T) {
	t.Parallel()
	w := &town{}
	facts := actionmatch.NewFacts(t.Context(), 1, w, w)
	s := new(actionmatch.EventView)
	s.SetLookup(facts)
	m := lenient(t, filters(adaOnly, fiveSeats, inSeven, acme))
	other := lenient(t, actionmatch.Step{Event: "other", Properties: filters(adaOnly).Properties})
	for range 3 {
		s.Reset(&sdk.Event{Name: "e", DistinctID: "ada", Properties: []byte(`{"$group_2":"acme"}`)})
		for range 2 {
			if got := m.Match(s, &match.Env{}); got != yes {
				t.Fatal(got)
			}
		}
	}
	s.Reset(&sdk.Event{Name: "e", DistinctID: "bob"})
	if got := other.Match(s, &match.Env{}); got != no {
		t.Fatal(got)
	}
	if *w != (town{persons: 1, groups: 1, types: 1, cohorts: 1}) {
		t.Errorf("asked %+v", *w)
	}
	if facts.Err() != nil {
		t.Error(facts.Err())
	}
}

func TestFactsErrors(t *testing.T) {
	t.Parallel()
	down := errors.New("the database is down")
	w := &town{fails: down}
	noSource := func() *actionmatch.Facts { return actionmatch.NewFacts(t.Context(), 1, nil, nil) }
	failing := func() *actionmatch.Facts { return actionmatch.NewFacts(t.Context(), 1, w, w) }
	for _, filter := range []string{adaOnly, fiveSeats, inSeven} {
		for name, facts := range map[string]*actionmatch.Facts{"missing": noSource(), "failing": failing()} {
			s := new(actionmatch.EventView)
			s.SetLookup(facts)
			s.Reset(&sdk.Event{Name: "e", DistinctID: "ada", Properties: []byte(`{"$groups":{"company":"acme"}}`)})
			m := lenient(t, filters(filter))
			if got := m.Match(s, &match.Env{}); got != unknown {
				t.Errorf("%s, %s: %v", name, filter, got)
			}
			agree(t, m, s, &match.Env{})
			if facts.Err() == nil || name == "failing" && !errors.Is(facts.Err(), down) {
				t.Errorf("%s, %s: %v", name, filter, facts.Err())
			}
		}
	}
}

func TestMissingFactsInTwoRounds(t *testing.T) {
	t.Parallel()
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: "e", Properties: []byte(`{"$group_2":"acme"}`)})
	m := lenient(t, filters(adaOnly, fiveSeats, inSeven))
	if got := m.Match(s, &match.Env{}); got != unknown {
		t.Fatal(got)
	}
	w := s.Missing()
	if !w.Person || !slices.Equal(w.Groups, []int{2}) || !slices.Equal(w.Cohorts, []int64{7}) {
		t.Fatalf("wanted %+v", w)
	}
	s.SetPerson([]byte(`{"email":"ada@example.com"}`))
	s.SetGroup(2, actionmatch.Group{Key: "acme", Properties: []byte(`{"seats":5}`)})
	s.SetCohort(7, yes)
	if s.Missing().Any() {
		t.Errorf("still wanted %+v", s.Missing())
	}
	if got := m.Match(s, &match.Env{}); got != yes {
		t.Error(got)
	}
	s.Reset(&sdk.Event{Name: "e", Properties: []byte(`{"$group_2":"acme"}`)})
	if got := m.Match(s, &match.Env{}); got != unknown {
		t.Errorf("what was known of the event before is still there: %v", got)
	}
}

func TestEventViewUsesLastDuplicateMember(t *testing.T) {
	t.Parallel()
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: "e", Properties: []byte(`{"a":1,"\u0061":2,"$current_url":"x"}`)})
	if got := string(s.Property("a").AppendTo(nil)); got != "2" || s.URL() != "x" {
		t.Errorf("a is %s at %s", got, s.URL())
	}
}

func TestEventViewReleasesLargeBuffers(t *testing.T) {
	t.Parallel()
	s := new(actionmatch.EventView)
	large := []byte(`{"big":"` + strings.Repeat("x", 1<<20) + `"`)
	for i := range 5000 {
		large = fmt.Appendf(large, `,"p%d":%d`, i, i)
	}
	large = append(large, '}')
	m := lenient(t, filters(`{"key":"p4999","value":4999}`, `{"key":"p4999","type":"person","value":4999}`))
	for _, ev := range [][]byte{large, []byte(`{"p4999":1}`), large} {
		s.Reset(&sdk.Event{Name: "e", Properties: ev})
		s.SetPerson(ev)
		if got := m.Match(s, &match.Env{}); got != match.Of(len(ev) > 100) {
			t.Error(got)
		}
	}
	if c := s.Chain(); len(c.Elements()) != 0 || s.Event().Name != "e" {
		t.Error("the event is another")
	}
}

func TestEventViewCopiesFacts(t *testing.T) {
	t.Parallel()
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: "e"})
	raw := []byte(`{"email":"ada@example.com"}`)
	s.SetPerson(raw)
	clear(raw)
	if got := lenient(t, filters(adaOnly)).Match(s, &match.Env{}); got != yes {
		t.Error(got)
	}
}
