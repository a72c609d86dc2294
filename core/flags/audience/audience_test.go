package audience_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/persons"
)

// people are stored persons with what is stored about them elsewhere.
type people struct {
	list     []persons.Person
	lists    map[string][]int64
	hashKeys map[int64]map[string]string

	withIDs, withLists, withHashKeys bool // what the count has read
}

func (p *people) Walk(_ context.Context, _ int64, fn func([]persons.Person) error) error {
	p.withIDs = true
	return fn(slices.Clone(p.list))
}

func (p *people) WalkProperties(_ context.Context, _ int64, fn func([]persons.Person) error) error {
	page := slices.Clone(p.list)
	for i := range page {
		page[i].DistinctIDs = nil
	}
	return fn(page)
}

func (p *people) WalkAfter(_ context.Context, _ int64, after persons.Position, fn func([]persons.Person) error) error {
	rest := slices.DeleteFunc(slices.Clone(p.list), func(one persons.Person) bool { return one.Position().Compare(after) <= 0 })
	for page := range slices.Chunk(rest, 7) {
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

func (p *people) Count(context.Context, int64) (int, error) { return len(p.list), nil }

func (p *people) StaticCohortsOf(context.Context, int64, []string) (map[string][]int64, error) {
	p.withLists = true
	return p.lists, nil
}

func (p *people) HashKeysOf(context.Context, int64, []int64) (map[int64]map[string]string, error) {
	p.withHashKeys = true
	return p.hashKeys, nil
}

// project has flags and cohorts that refer to each other: by id and by key,
// nested, static, with a rollout and with experience continuity.
func project() eval.ProjectDefinitions {
	flag := func(id int64, key, filters string, continuous bool) eval.Definition {
		return eval.Definition{ID: id, ProjectID: 1, Key: key, Active: true, ExperienceContinuity: continuous, Filters: json.RawMessage(filters)}
	}
	return eval.ProjectDefinitions{
		Flags: []eval.Definition{
			flag(1, "plan", `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"pro"}]}]}`, false),
			flag(2, "half", `{"groups":[{"properties":[],"rollout_percentage":50}]}`, false),
			flag(3, "kept", `{"groups":[{"properties":[],"rollout_percentage":50}]}`, true),
			flag(4, "chain", `{"groups":[{"properties":[{"key":"3","type":"flag","operator":"flag_evaluates_to","value":true},{"key":"id","type":"cohort","operator":"in","value":12}]}]}`, false),
			flag(5, "unrelated", `{"groups":[{"properties":[{"key":"distinct_id","type":"person","operator":"icontains","value":"u"}]}]}`, true),
		},
		Cohorts: []eval.CohortDefinition{
			{ID: 10, Filters: json.RawMessage(`{"type":"AND","values":[{"type":"OR","values":[{"key":"age","type":"person","operator":"gt","value":30}]}]}`)},
			{ID: 11, Static: true},
			{ID: 12, Filters: json.RawMessage(`{"type":"OR","values":[{"type":"AND","values":[{"key":"id","type":"cohort","operator":"in","value":11}]},{"type":"AND","values":[{"key":"id","type":"cohort","operator":"in","value":10}]}]}`)},
		},
	}
}

// TestCountEqualsTheEvaluator compares counts with an evaluation of all
// definitions with all stored data, and checks that a count reads what it needs.
func TestCountEqualsTheEvaluator(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	stored := people{lists: map[string][]int64{}, hashKeys: map[int64]map[string]string{}}
	for i := range int64(400) {
		p := persons.Person{ID: i + 1, DistinctIDs: []string{fmt.Sprint("u", i), fmt.Sprint("x", i)}}
		p.Properties = []byte(fmt.Sprintf(`{"plan":%q,"age":%d}`, []string{"pro", "free"}[r.IntN(2)], r.IntN(60)))
		switch r.IntN(4) {
		case 0:
			stored.lists[p.DistinctIDs[1]] = []int64{11}
		case 1:
			stored.hashKeys[p.ID] = map[string]string{"kept": fmt.Sprint("before", i)}
		}
		stored.list = append(stored.list, p)
	}
	now := time.Now()
	for _, c := range []struct {
		name, properties     string
		ids, lists, hashKeys bool
	}{
		{"a property", `[{"key":"plan","type":"person","operator":"exact","value":"pro"}]`, false, false, false},
		{"a missing property", `[{"key":"email","type":"person","operator":"is_not_set"}]`, false, false, false},
		{"the distinct id", `[{"key":"distinct_id","type":"person","operator":"icontains","value":"7"}]`, true, false, false},
		{"a cohort", `[{"key":"id","type":"cohort","operator":"in","value":10}]`, false, false, false},
		{"a static cohort", `[{"key":"id","type":"cohort","operator":"not_in","value":11}]`, true, true, false},
		{"a cohort of cohorts", `[{"key":"id","type":"cohort","operator":"in","value":"12"},{"key":"plan","operator":"exact","value":"pro"}]`, true, true, false},
		{"a cohort that does not exist", `[{"key":"id","type":"cohort","operator":"in","value":99}]`, false, false, false},
		{"a flag", `[{"key":1,"type":"flag","operator":"flag_evaluates_to","value":true}]`, true, false, false},
		{"a flag by its key", `[{"key":"half","type":"flag","operator":"flag_evaluates_to","value":false}]`, true, false, false},
		{"a flag with experience continuity", `[{"key":"3","type":"flag","operator":"flag_evaluates_to","value":true}]`, true, false, true},
		{"a chain", `[{"key":4,"type":"flag","operator":"flag_evaluates_to","value":true}]`, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := stored
			filters := audience.Condition(json.RawMessage(c.properties), nil)
			counter := audience.New(time.Minute, audience.Dependencies{
				Persons: &p, Source: definitions{project()}, StaticCohorts: &p, HashKeys: &p, Now: func() time.Time { return now },
			})
			got, err := counter.Count(t.Context(), 1, filters, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := evaluateAll(&stored, filters, now); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if p.withIDs != c.ids || p.withLists != c.lists || p.withHashKeys != c.hashKeys {
				t.Errorf("read distinct ids %t, static cohorts %t, hash keys %t", p.withIDs, p.withLists, p.withHashKeys)
			}
		})
	}
}

// evaluateAll counts with every definition and all data.
func evaluateAll(p *people, filters json.RawMessage, now time.Time) audience.Audience {
	d := project()
	flag := eval.Definition{ID: 1000, ProjectID: 1, Key: "counted", Filters: filters, Active: true}
	set := eval.Compile(append(d.Flags, flag), d.Cohorts, d.GroupTypes, eval.CompileOptions{})
	out := audience.Audience{Total: int64(len(p.list))}
	for _, person := range p.list {
		known := eval.KnownProperties{PersonProperties: person.Properties, HashKeys: p.hashKeys[person.ID]}
		for _, id := range person.DistinctIDs {
			known.StaticCohorts = append(known.StaticCohorts, p.lists[id]...)
		}
		for _, result := range set.Evaluate(&eval.Request{DistinctID: person.DistinctIDs[0], FlagKeys: []string{"counted"}}, &known, now) {
			switch {
			case result.Failed != eval.CauseNone:
				out.Unknown++
			case result.On:
				out.Affected++
			}
		}
	}
	return out
}

// TestSelectPagesAreTheAudience follows the pages of a selection and compares them
// with the count.
func TestSelectPagesAreTheAudience(t *testing.T) {
	t.Parallel()
	stored := people{}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(100) {
		stored.list = append(stored.list, persons.Person{
			ID: i + 1, DistinctIDs: []string{fmt.Sprint("u", i)}, Properties: []byte(fmt.Sprintf(`{"plan":"pro","age":%d}`, i)),
			CreatedAt: begin.Add(time.Duration(i/3) * time.Second),
		})
	}
	counter := audience.New(time.Minute, audience.Dependencies{Persons: &stored, Source: definitions{project()}, StaticCohorts: &stored, HashKeys: &stored})
	for limit := 1; limit < 80; limit += 13 {
		var ids []int64
		q := audience.Query{Limit: limit, Skip: 5}
		for {
			got, err := counter.SelectCohort(t.Context(), 1, 10, q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Persons {
				ids = append(ids, got.Persons[i].ID)
			}
			if q.After, q.Skip = got.After, q.Skip-got.Skipped; got.Complete {
				break
			}
		}
		if len(ids) != 64 || ids[0] != 37 || ids[63] != 100 { // age over 30, without the first five
			t.Errorf("limit %d: %v", limit, ids)
		}
	}
	got, err := counter.SelectFlag(t.Context(), 1, 2, audience.Query{Limit: 1000})
	if err != nil || !got.Complete || len(got.Persons) < 30 || len(got.Persons) > 70 {
		t.Errorf("a flag at half: %d persons, %v", len(got.Persons), err)
	}
}

// TestSelectStopsInTime ends a selection by its time and continues it.
func TestSelectStopsInTime(t *testing.T) {
	t.Parallel()
	stored := people{}
	for i := range int64(30) {
		stored.list = append(stored.list, persons.Person{ID: i + 1, DistinctIDs: []string{fmt.Sprint("u", i)}, Properties: []byte(`{"age":40}`)})
	}
	counter := audience.New(time.Nanosecond, audience.Dependencies{Persons: &stored, Source: definitions{project()}, StaticCohorts: &stored, HashKeys: &stored})
	calls, found := 0, 0
	for q := (audience.Query{Limit: 100}); ; calls++ {
		got, err := counter.SelectCohort(t.Context(), 1, 10, q)
		if err != nil {
			t.Fatal(err)
		}
		if found += len(got.Persons); got.Complete {
			break
		}
		q.After = got.After
	}
	if found != 30 || calls < 2 {
		t.Errorf("%d persons in %d calls", found, calls)
	}
}
