package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// place is a project with its events, its people and the history of both.
type place struct {
	t       testing.TB
	db      *db.DB
	events  *events.Service
	persons *persons.Service
	past    history.EventHistory
	cfg     history.Config
	sources actionmatch.Sources
	history *history.Service
	next    int
}

func newPlace(t testing.TB, d *db.DB, change func(*place)) *place {
	t.Helper()
	p := &place{
		t: t, db: d, events: events.New(events.DefaultConfig(), d, zap.NewNop(), nil),
		persons: persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil), cfg: history.DefaultConfig(),
	}
	p.cfg.MaxWait = time.Minute
	p.persons.OnErase(p.events.Erase)
	p.persons.OnMerge(p.events.PersonsMerged)
	p.persons.OnDelete(p.events.PersonDeleted)
	p.past, p.sources.Persons = p.events, p.persons
	if change != nil {
		change(p)
	}
	if err := p.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	p.open()
	return p
}

// open starts a history, as a server does that starts.
func (p *place) open() {
	h := history.New(p.cfg, p.db, p.past, p.persons, p.sources, zap.NewNop(), nil)
	if err := h.Start(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	p.history = h
}

// happened stores an event as ingestion does.
func (p *place) happened(at time.Time, name, distinctID, properties string) *sdk.Event {
	p.t.Helper()
	ev := p.event(at, name, distinctID, properties)
	p.store(ev)
	return ev
}

func (p *place) event(at time.Time, name, distinctID, properties string) *sdk.Event {
	p.next++
	return &sdk.Event{
		UUID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, p.next)).String(), ProjectID: 1, Name: name, DistinctID: distinctID,
		Timestamp: at, ReceivedAt: at, Properties: json.RawMessage(properties),
	}
}

func (p *place) store(batch ...*sdk.Event) {
	p.t.Helper()
	err := p.db.Tx(p.t.Context(), func(ctx context.Context) error {
		if _, err := p.persons.Process(ctx, batch); err != nil {
			return err
		}
		_, err := p.events.Store(ctx, batch)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) count(a *history.Definition, from, to time.Time) history.CountStatus {
	p.t.Helper()
	f, err := p.history.Count(p.t.Context(), a, time.UTC, from, to)
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

func action(id int64, steps ...actionmatch.Step) *history.Definition {
	return &history.Definition{ID: id, ProjectID: 1, Steps: steps}
}

// today is the time the events of these tests are around.
var today = time.Now().UTC().Truncate(time.Second)

func TestCountFollowsNewEvents(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, nil)
		from := today.AddDate(0, -3, 0)
		a := action(1, actionmatch.Step{Event: "signup"})
		is := func(what string, want int64) {
			t.Helper()
			if f := p.count(a, from, today); f.Count != want || f.Calculating || f.CalculatedAt.IsZero() {
				t.Errorf("%s: %+v, want %d", what, f, want)
			}
		}
		is("an empty history", 0)
		p.happened(today.Add(-time.Hour), "signup", "a", `{}`)
		p.happened(today.Add(-time.Hour), "other", "a", `{}`)
		is("a first event", 1)
		p.happened(today.AddDate(0, -2, 0), "signup", "a", `{}`)
		is("an event that comes late", 2)
		p.happened(from.Add(-time.Second), "signup", "a", `{}`)
		p.happened(today, "signup", "a", `{}`)
		p.happened(today.Add(time.Minute), "signup", "a", `{}`)
		is("events outside of the time", 2)
		p.happened(from, "signup", "b", `{}`)
		is("an event at the first moment", 3)
		p.open()
		p.happened(today.Add(-time.Minute), "signup", "b", `{}`)
		is("after a restart", 4)
		if _, err := p.events.Erase(t.Context(), 1, []string{"b"}); err != nil {
			t.Fatal(err)
		}
		is("after an erasure", 2)
		p.happened(today.Add(-time.Minute), "signup", "c", `{}`)
		is("a row whose number is used again", 3)
		a.Steps = append(a.Steps, actionmatch.Step{Event: "other"})
		is("another definition", 4)
		a.Steps = nil
		is("no steps", 0)
	})
}

func TestHistoryAgreesWithTheMatcher(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, func(p *place) { p.cfg.Refresh = time.Second })
		g := &maker{rand.New(rand.NewPCG(7, 11))}
		var all []*sdk.Event
		for round := range 4 {
			var batch []*sdk.Event
			for range 150 {
				at := today.Add(-time.Duration(g.IntN(int(30*24*time.Hour/time.Second))) * time.Second)
				batch = append(batch, p.event(at, g.name(), fmt.Sprint("who ", g.IntN(20)), g.properties()))
				batch[len(batch)-1].ElementsChain = g.chain()
			}
			all = append(all, batch...)
			p.store(batch...)
			for n := range 25 {
				// The same definitions every round, so that later ones follow.
				steps := (&maker{rand.New(rand.NewPCG(uint64(n), 5))}).steps()
				p.agree(round, action(int64(n+1), steps...), all, today.AddDate(0, 0, -g.IntN(30)), today.Add(-time.Duration(g.IntN(1e6))*time.Second/10))
			}
		}
	})
}

// agree holds a count, a series and the people against the matcher itself.
func (p *place) agree(round int, a *history.Definition, all []*sdk.Event, from, to time.Time) {
	p.t.Helper()
	if to.Before(from) {
		from, to = to, from
	}
	m, err := actionmatch.Compile(a.Steps, actionmatch.CompileOptions{Lenient: true})
	if err != nil {
		p.t.Fatal(err)
	}
	var seen actionmatch.EventView
	var want int64
	days, who := map[string]int64{}, map[string]bool{}
	for _, ev := range all {
		seen.Reset(ev)
		if ev.Timestamp.Before(from) || !ev.Timestamp.Before(to) || m.Match(&seen, &match.Env{Now: today}) != match.True {
			continue
		}
		want++
		days[ev.Timestamp.Format(time.DateOnly)]++
		who[ev.DistinctID] = true
	}
	text, _ := json.Marshal(a.Steps)
	if f := p.count(a, from, to); f.Count != want || f.Calculating {
		p.t.Errorf("round %d, %s\ncount %+v, want %d", round, text, f, want)
	}
	buckets, f, err := p.history.Series(p.t.Context(), a, time.UTC, from, to, history.Day)
	if err != nil || f.Count != want {
		p.t.Fatalf("round %d, %s\nseries %+v %v, want %d", round, text, f, err, want)
	}
	for _, b := range buckets {
		if day := b.Start.Format(time.DateOnly); b.Count != days[day] {
			p.t.Errorf("round %d, %s\non %s %d, want %d", round, text, day, b.Count, days[day])
		}
	}
	page, err := p.history.Persons(p.t.Context(), 1, history.PersonQuery{Steps: a.Steps, Location: time.UTC, From: from, To: to}, 0, 100)
	if err != nil {
		p.t.Fatal(err)
	}
	var got []string
	for _, one := range page.Persons {
		got = append(got, one.DistinctIDs...)
	}
	var wanted []string
	for id := range who {
		wanted = append(wanted, id)
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		p.t.Errorf("round %d, %s\npeople %v, want %v", round, text, got, wanted)
	}
}

// maker makes events and definitions that have something to do with each other.
type maker struct{ *rand.Rand }

func (g *maker) of(list ...string) string { return list[g.IntN(len(list))] }

func (g *maker) name() string {
	return g.of("$pageview", "$autocapture", "signup", "100%", "a_b", "Ünï")
}

// url has what LIKE, GLOB and JSON care about.
func (g *maker) url() string {
	s := g.of("https://", "http://", "") + g.of("example.com", "EXAMPLE.com", "é.example", "a_b.example")
	for range g.IntN(4) {
		s += g.of("/docs", "/a*b", "/[x]", "/100%", "?q=1", "!", "\\", "/ü💻", "_", "^", "]", "'", `"`)
	}
	if g.IntN(10) == 0 {
		s += "/" + strings.Repeat(g.of("x", "ü", "💻"), 240+g.IntN(800)) + g.of("/docs", "")
	}
	return s
}

func (g *maker) properties() string {
	switch g.IntN(12) {
	case 0:
		return `{}`
	case 1:
		return `{"$current_url":` + g.of("7", "null", `""`, `["https://example.com"]`) + `}`
	case 2:
		return fmt.Sprintf(`{"$current_url":"x","plan":"pro","$current_url":%s}`, quote(g.url()))
	}
	return fmt.Sprintf(`{"$current_url":%s,"plan":%s}`, quote(g.url()), quote(g.of("pro", "free")))
}

func (g *maker) chain() string {
	return g.of("", `a.btn:href="/x"text="Go";div:nth-child="1"`, `button:text="Buy"`)
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func (g *maker) steps() []actionmatch.Step {
	out := make([]actionmatch.Step, g.IntN(4))
	for i := range out {
		s := &out[i]
		if g.IntN(4) > 0 {
			s.Event = g.name()
		}
		if g.IntN(3) > 0 {
			s.URLMatching = g.of("", "contains", "exact", "regex")
			s.URL = g.of("docs", "example.com", "a*b", "[x]", "100\\%", "%docs", "_b.ex", "a\\_b", "ü", "💻", "!", "\\", "^", "]", "'",
				"https://example.com", "EXAMPLE", "x%docs", "\\\\", "%", "_", g.url())
		}
		switch g.IntN(8) {
		case 0:
			s.TagName = "a"
		case 1:
			s.Properties = []json.RawMessage{json.RawMessage(`{"key":"plan","value":"pro"}`)}
		}
	}
	return out
}

func TestPersonsFollowMerges(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, nil)
		for i := range 250 {
			p.happened(today.Add(-time.Hour), "signup", fmt.Sprintf("u%03d", i), fmt.Sprintf(`{"$set":{"n":%d}}`, i))
		}
		q := history.PersonQuery{Steps: []actionmatch.Step{{Event: "signup"}}, Location: time.UTC, From: today.AddDate(0, 0, -7)}
		pages := func() (sizes []int, ids map[string]bool) {
			ids = map[string]bool{}
			for offset := 0; ; offset += 100 {
				page, err := p.history.Persons(t.Context(), 1, q, offset, 100)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range page.Persons {
					for _, id := range one.DistinctIDs {
						if ids[id] {
							t.Errorf("%s is there twice", id)
						}
						ids[id] = true
					}
				}
				if sizes = append(sizes, len(page.Persons)); !page.More {
					return sizes, ids
				}
			}
		}
		check := func(what string, wantSizes []int, wantIDs int) {
			t.Helper()
			if sizes, ids := pages(); !slices.Equal(sizes, wantSizes) || len(ids) != wantIDs {
				t.Errorf("%s: pages of %v with %d ids, want %v with %d", what, sizes, len(ids), wantSizes, wantIDs)
			}
		}
		check("all persons", []int{100, 100, 50}, 250)
		p.happened(today, "$create_alias", "u000", `{"alias":"u001"}`)
		check("two become one", []int{100, 100, 49}, 250)
		p.happened(today, "$create_alias", "elsewhere", `{"alias":"u002"}`)
		check("a merge into a new person", []int{100, 100, 49}, 251)
		p.happened(today.Add(-time.Minute), "signup", "new", `{}`)
		check("a new person", []int{100, 100, 50}, 252)
		if err := p.persons.Delete(t.Context(), 1, p.personOf("u010"), true); err != nil {
			t.Fatal(err)
		}
		check("an erased person", []int{100, 100, 49}, 251)
		q.Filters = []json.RawMessage{json.RawMessage(`{"key":"n","type":"person","operator":"gte","value":200}`)}
		check("a filter of persons as they are today", []int{50}, 50)
		if f := p.count(action(1, actionmatch.Step{Event: "signup", Properties: q.Filters}), today.AddDate(0, 0, -7), today); f.Count != 50 {
			t.Errorf("with a filter of persons %+v, want 50", f)
		}
	})
}

func (p *place) personOf(distinctID string) string {
	p.t.Helper()
	found, _, err := p.persons.Find(p.t.Context(), 1, persons.Query{DistinctID: distinctID}, 1, 0)
	if err != nil || len(found) != 1 {
		p.t.Fatalf("%s: %v %v", distinctID, found, err)
	}
	return found[0].UUID
}
