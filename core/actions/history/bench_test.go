package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/sdk"
)

// BenchmarkHistory asks for the page views of 30 days at addresses with
// insights in them, a twentieth of the page views, which are two fifths of the
// events of 90 days: GUIDON_BENCH_EVENTS events (100,000 when it is not set)
// by up to 200,000 people.
func BenchmarkHistory(b *testing.B) {
	n := 100_000
	if v := os.Getenv("GUIDON_BENCH_EVENTS"); v != "" {
		if _, err := fmt.Sscan(strings.ReplaceAll(v, "_", ""), &n); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("sqlite text", func(b *testing.B) { benchHistory(b, dbtest.SQLite(b), n, false) })
	b.Run("sqlite", func(b *testing.B) { benchHistory(b, dbtest.SQLite(b), n, true) })
	b.Run("postgres", func(b *testing.B) { benchHistory(b, dbtest.Postgres(b), n, false) })
}

func benchHistory(b *testing.B, d *db.DB, n int, compress bool) {
	p := newPlace(b, d, nil)
	g := &visits{rand.New(rand.NewPCG(1, 2)), today.Add(-90 * 24 * time.Hour), 90 * 24 * time.Hour / time.Duration(n)}
	for done := 0; done < n; done += 5000 {
		if _, err := p.events.Store(b.Context(), g.batch(5000)); err != nil {
			b.Fatal(err)
		}
		if compress && done == 0 {
			if _, err := p.events.Train(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
		}
	}
	inhabit(b, d)
	if d.Postgres() {
		if _, err := d.Write(b.Context()).ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	from, to := today.AddDate(0, 0, -30), today
	ctx := context.Background()
	steps := []actionmatch.Step{{Event: "$pageview", URL: "insights"}}
	id := int64(0)
	count := func(b *testing.B) {
		f, err := p.history.Count(ctx, action(id, steps...), time.UTC, from, to)
		if err != nil || f.Count == 0 || f.Calculating {
			b.Fatalf("%+v %v", f, err)
		}
		b.ReportMetric(float64(f.Count), "events")
	}
	people := func(b *testing.B, h *history.Service) {
		page, err := h.Persons(ctx, 1, history.PersonQuery{Steps: steps, Location: time.UTC, From: from}, 0, 100)
		if err != nil || len(page.Persons) != 100 {
			b.Fatalf("%+v %v", page, err)
		}
	}
	b.Run("count first", func(b *testing.B) {
		for b.Loop() {
			id++
			count(b)
		}
		b.ReportMetric(float64(spaceOf(b, d))/float64(n), "B/event")
	})
	b.Run("count kept", func(b *testing.B) {
		for b.Loop() {
			count(b)
		}
	})
	b.Run("count with 1000 newer", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if _, err := p.events.Store(ctx, g.batch(1000)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			count(b)
		}
	})
	b.Run("count first, three months", func(b *testing.B) {
		from = today.AddDate(0, -3, 0)
		for b.Loop() {
			id++
			count(b)
		}
		from = today.AddDate(0, 0, -30)
	})
	b.Run("count first, reading a property", func(b *testing.B) {
		plain := steps
		steps = []actionmatch.Step{{Event: "$pageview", Properties: []json.RawMessage{json.RawMessage(`{"key":"amount","operator":"gt","value":900}`)}}}
		for b.Loop() {
			id++
			count(b)
		}
		steps = plain
	})
	b.Run("people first", func(b *testing.B) {
		for b.Loop() {
			h := history.New(p.cfg, d, p.past, p.persons, p.sources, zap.NewNop(), nil)
			people(b, h)
		}
	})
	b.Run("people kept", func(b *testing.B) {
		people(b, p.history)
		for b.Loop() {
			people(b, p.history)
		}
	})
}

// visits makes events of about 550 bytes as a web site sends them.
type visits struct {
	*rand.Rand
	at   time.Time
	step time.Duration
}

const inhabitants = 200_000

func inhabitant(n int) string { return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)).String() }

func (g *visits) batch(n int) []*sdk.Event {
	out := make([]*sdk.Event, n)
	for i := range out {
		name := fmt.Sprintf("event_%d", g.IntN(100))
		if g.IntN(5) < 2 {
			name = "$pageview"
		}
		part := "insights"
		if k := g.IntN(20); k > 0 {
			part = fmt.Sprintf("section-%d", k)
		}
		who := inhabitant(g.IntN(inhabitants))
		id, _ := uuid.NewV7()
		g.at = g.at.Add(g.step)
		out[i] = &sdk.Event{
			UUID: id.String(), ProjectID: 1, Name: name, DistinctID: who, PersonID: who, ReceivedAt: g.at,
			Timestamp: g.at.Add(-time.Duration(g.Int64N(int64(10 * time.Second)))),
			Properties: json.RawMessage(fmt.Sprintf(`{"$current_url":"https://app.example.com/%[1]s/%[2]d?x=%[3]d","$host":"app.example.com",`+
				`"$pathname":"/%[1]s/%[2]d","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$device_type":"Desktop",`+
				`"$session_id":"%[4]s","$lib":"web","$lib_version":"1.96.1","$screen_height":1080,"$screen_width":1920,`+
				`"$viewport_height":900,"$viewport_width":1600,"amount":%[5]d}`, part, g.IntN(500), g.IntN(1e6), id, g.IntN(1000))),
		}
	}
	return out
}

// inhabit makes the people of visits.
func inhabit(b *testing.B, d *db.DB) {
	type person struct {
		bun.BaseModel `bun:"table:persons"`

		ID, ProjectID int64
		UUID          string
		CreatedAt     int64
		UpdatedAt     int64
		Properties    string
	}
	type link struct {
		bun.BaseModel `bun:"table:person_distinct_ids"`

		ProjectID  int64
		DistinctID string
		PersonID   int64
		AddedAt    int64
	}
	err := d.Tx(b.Context(), func(ctx context.Context) error {
		for first := 0; first < inhabitants; first += 1000 {
			people, links := make([]person, 1000), make([]link, 1000)
			for i := range people {
				who := inhabitant(first + i)
				people[i] = person{ID: int64(first + i + 1), ProjectID: 1, UUID: who, Properties: `{"email":"person@example.com","plan":"pro"}`}
				links[i] = link{ProjectID: 1, DistinctID: who, PersonID: people[i].ID}
			}
			if _, err := d.Write(ctx).NewInsert().Model(&people).Exec(ctx); err != nil {
				return err
			}
			if _, err := d.Write(ctx).NewInsert().Model(&links).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// spaceOf is what events and their indexes take on disk.
func spaceOf(b *testing.B, d *db.DB) (n int64) {
	query := "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'events%'"
	if d.Postgres() {
		query = "SELECT pg_total_relation_size('events')"
	}
	if err := d.Read(b.Context()).NewRaw(query).Scan(b.Context(), &n); err != nil {
		b.Fatal(err)
	}
	return n
}
