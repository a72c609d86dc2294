package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// traffic makes events of about 550 bytes as a web site sends them: 100 names,
// few of them often, 200,000 people, one event after the other with a little
// disorder.
type traffic struct {
	rnd  *rand.Rand
	now  time.Time
	step time.Duration
}

func newTraffic(from time.Time, step time.Duration) *traffic {
	return &traffic{rand.New(rand.NewPCG(1, 2)), from, step}
}

func (g *traffic) event() *sdk.Event {
	name := fmt.Sprintf("event_%d", g.rnd.IntN(100))
	if g.rnd.IntN(5) < 2 {
		name = "$pageview"
	}
	path := fmt.Sprintf("/%s/%d", []string{"insights", "home", "pricing", "docs", "blog"}[g.rnd.IntN(5)], g.rnd.IntN(500))
	who := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, g.rnd.IntN(200_000))).String()
	g.now = g.now.Add(g.step)
	at := g.now.Add(-time.Duration(g.rnd.Int64N(int64(10 * time.Second))))
	id, _ := uuid.NewV7()
	return &sdk.Event{
		UUID: id.String(), ProjectID: 1, Name: name, DistinctID: who, PersonID: who, Timestamp: at, ReceivedAt: g.now,
		Properties: json.RawMessage(fmt.Sprintf(`{"$current_url":"https://app.example.com%s?x=%d","$host":"app.example.com",`+
			`"$pathname":"%s","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$device_type":"Desktop",`+
			`"$session_id":"%s","$lib":"web","$lib_version":"1.96.1","$screen_height":1080,"$screen_width":1920,`+
			`"$viewport_height":900,"$viewport_width":1600,"amount":%d}`, path, g.rnd.IntN(1e6), path, id, g.rnd.IntN(1000))),
	}
}

func (g *traffic) batch(n int) []*sdk.Event {
	out := make([]*sdk.Event, n)
	for i := range out {
		out[i] = g.event()
	}
	return out
}

// cpu is the processor time this process has used.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// onBoth runs a benchmark on a fresh database of each dialect.
func onBoth(b *testing.B, fn func(b *testing.B, d *db.DB)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, dbtest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { fn(b, dbtest.Postgres(b)) })
}

// BenchmarkStore is one transaction of 1,000 events an operation. On SQLite it runs with
// text and with compression.
func BenchmarkStore(b *testing.B) {
	const size = 1000
	run := func(b *testing.B, d *db.DB, compress bool) {
		cfg := events.DefaultConfig()
		cfg.Compress = compress
		s, g := events.New(cfg, d, zap.NewNop(), nil), newTraffic(start, time.Millisecond)
		for range 20 { // as many pages as the indexes of a used database
			store(b, s, g.batch(size)...)
			train(b, s)
		}
		var spent time.Duration
		for b.Loop() {
			b.StopTimer()
			batch := g.batch(size)
			before := cpu()
			b.StartTimer()
			if _, err := s.Store(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			spent += cpu() - before
		}
		events := float64(b.N * size)
		b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64(spent.Nanoseconds())/events, "cpu-ns/event")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("sqlite text", func(b *testing.B) { run(b, dbtest.SQLite(b), false) })
	b.Run("sqlite", func(b *testing.B) { run(b, dbtest.SQLite(b), true) })
	b.Run("postgres", func(b *testing.B) { run(b, dbtest.Postgres(b), true) })
}

func train(b *testing.B, s *events.Service) {
	b.Helper()
	if _, err := s.Train(context.Background(), 1); err != nil {
		b.Fatal(err)
	}
}

// logBytes logs the bytes an event of the table and of each index on SQLite.
func logBytes(b *testing.B, d *db.DB, n int) {
	b.Helper()
	if d.Postgres() {
		return
	}
	rows, err := d.Read(context.Background()).QueryContext(context.Background(),
		"SELECT name, sum(pgsize), sum(payload) FROM dbstat WHERE name LIKE 'event%' GROUP BY 1 ORDER BY 2 DESC")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var pages, payload float64
		if err := rows.Scan(&name, &pages, &payload); err != nil {
			b.Fatal(err)
		}
		b.Logf("%-24s %6.1f B/event, %6.1f of them content", name, pages/float64(n), payload/float64(n))
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHistory asks questions of a long history: GUIDON_BENCH_EVENTS
// events (200,000 when it is not set), and tells what one takes on disk.
func BenchmarkHistory(b *testing.B) {
	n := 200_000
	if v := os.Getenv("GUIDON_BENCH_EVENTS"); v != "" {
		if _, err := fmt.Sscan(strings.ReplaceAll(v, "_", ""), &n); err != nil {
			b.Fatal(err)
		}
	}
	onBoth(b, func(b *testing.B, d *db.DB) {
		const history = 90 * 24 * time.Hour
		s, g := service(b, d), newTraffic(start.Add(-history), history/time.Duration(n))
		for done := 0; done < n; done += 2000 {
			store(b, s, g.batch(2000)...)
			if done == 0 {
				train(b, s)
			}
		}
		logBytes(b, d, n)
		if d.Postgres() {
			if _, err := d.Write(context.Background()).ExecContext(context.Background(), "VACUUM ANALYZE events"); err != nil {
				b.Fatal(err)
			}
		}
		month := start.Add(-30 * 24 * time.Hour)
		b.Run("list", func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.List(context.Background(), 1, events.Filter{}, 100); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size(b, d))/float64(n), "B/event")
		})
		b.Run("list by name", func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.List(context.Background(), 1, events.Filter{Event: "event_7"}, 100); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("count by name", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Count(context.Background(), 1, events.Filter{Event: "$pageview", After: month}); err != nil {
					b.Fatal(err)
				}
			}
		})
		ask := &events.HistoryQuery{ProjectID: 1, From: month, Any: []events.HistoryClause{{Event: "$pageview", URL: "insights", URLMatching: events.URLContains}}}
		plan, err := s.Plan(context.Background(), ask)
		if err != nil {
			b.Fatal(err)
		}
		b.Log(plan)
		b.Run("tally by address", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.CountHistory(context.Background(), ask, 15*time.Minute); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("actors by address", func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.DistinctIDs(context.Background(), ask); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("read by name", func(b *testing.B) {
			ask := &events.HistoryQuery{ProjectID: 1, From: month, Any: []events.HistoryClause{{Event: "$pageview"}}}
			read := 0
			for b.Loop() {
				if err := s.ScanHistory(context.Background(), ask, func(*events.HistoryEvent) error { read++; return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(read), "ns/event")
		})
	})
}

// size is what the table of events and its indexes take on disk.
func size(b *testing.B, d *db.DB) (n int64) {
	query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if d.Postgres() {
		query = "SELECT pg_total_relation_size('events')"
	}
	if err := d.Read(context.Background()).NewRaw(query).Scan(context.Background(), &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkKnown looks for 1,000 new events an operation.
func BenchmarkKnown(b *testing.B) {
	const size = 1000
	onBoth(b, func(b *testing.B, d *db.DB) {
		s, g := service(b, d), newTraffic(start, time.Millisecond)
		for range 100 {
			store(b, s, g.batch(size)...)
		}
		batch := g.batch(size)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		for b.Loop() {
			if _, err := s.Known(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*size), "ns/event")
	})
}
