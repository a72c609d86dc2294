//go:build e2e

package clickhouse

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/personcolumn"
	"github.com/guidonhq/guidon/core/persons/stage"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// traffic makes events of about 500 bytes as a web site sends them, evenly over 90 days: 100
// names, few of them often, 200,000 people.
func traffic(r *rand.Rand, row, total int64) event {
	name := fmt.Sprintf("event_%d", r.IntN(100))
	if r.IntN(5) < 2 {
		name = "$pageview"
	}
	path := fmt.Sprintf("/%s/%d", []string{"insights", "home", "pricing", "docs", "blog"}[r.IntN(5)], r.IntN(500))
	who := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, r.IntN(200_000))).String()
	received := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() + 90*dayMicros/total*row
	at := received - r.Int64N(10_000_000)
	var id uuid.UUID // version 7, of the time of the event
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	for i := range 6 {
		id[i] = byte(at / 1000 >> (40 - 8*i))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	url := fmt.Sprintf("https://app.example.com%s?x=%d", path, r.IntN(1e6))
	return event{
		project: 1, name: name, at: at, row: row, uuid: id, distinctID: who, received: received - at, url: url,
		person: personcolumn.Encode(uuid.MustParse(stage.PersonUUID(1, who)), 1, who),
		properties: fmt.Sprintf(`{"$current_url":"%s","$host":"app.example.com",`+
			`"$pathname":"%s","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$device_type":"Desktop",`+
			`"$session_id":"%s","$lib":"web","$lib_version":"1.96.1","$screen_height":1080,"$screen_width":1920,`+
			`"$viewport_height":900,"$viewport_width":1600,"amount":%d}`, url, path, id, r.IntN(1000)),
	}
}

// BenchmarkQueries asks questions of GUIDON_BENCH_EVENTS events (200,000 when it is not set),
// and logs what an event takes on disk. docs/benchmarks.md has the results.
func BenchmarkQueries(b *testing.B) {
	total := int64(200_000)
	if v := os.Getenv("GUIDON_BENCH_EVENTS"); v != "" {
		if _, err := fmt.Sscan(strings.ReplaceAll(v, "_", ""), &total); err != nil {
			b.Fatal(err)
		}
	}
	server := clickhousetest.Start(b)
	name := benchDatabase(b, server)
	s, service := testStore(b, dbtest.Postgres(b), server, name, 0)
	fill(b, s, total)
	for _, table := range []string{eventTable, idTable} {
		clickhousetest.Query(b, server, "OPTIMIZE TABLE "+name+"."+table+" FINAL")
		b.Logf("%s: %s bytes an event", table, clickhousetest.Query(b, server,
			fmt.Sprintf("SELECT sum(bytes_on_disk) / %d FROM system.parts WHERE active AND database = '%s' AND table = '%s'", total, name, table)))
	}
	logColumns(b, server, name, total)
	from := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	q := &events.HistoryQuery{ProjectID: 1, From: from, To: from.AddDate(0, 0, 30), Any: []events.HistoryClause{{Event: "$pageview", URL: "insights", URLMatching: events.URLContains}}}
	b.Run("count of 30 of 90 days by a part of the URL", func(b *testing.B) {
		for b.Loop() {
			if counts, err := service.CountHistory(b.Context(), q, time.Hour); err != nil || len(counts.Events) == 0 {
				b.Fatalf("%d intervals: %v", len(counts.Events), err)
			}
		}
	})
	b.Run("count of all", func(b *testing.B) {
		for b.Loop() {
			if n, err := service.Count(b.Context(), 1, events.Filter{Event: "$pageview", After: from}); err != nil || n == 0 {
				b.Fatalf("%d events: %v", n, err)
			}
		}
	})
	b.Run("distinct ids of 30 days", func(b *testing.B) {
		for b.Loop() {
			if ids, _, err := service.DistinctIDs(b.Context(), q); err != nil || len(ids) == 0 {
				b.Fatalf("%d ids: %v", len(ids), err)
			}
		}
	})
	b.Run("newest 100", func(b *testing.B) {
		for b.Loop() {
			if list, _, err := service.List(b.Context(), 1, events.Filter{Before: from}, 100); err != nil || len(list) != 100 {
				b.Fatalf("%d events: %v", len(list), err)
			}
		}
	})
	b.Run("known 1000", func(b *testing.B) {
		list := testEvents(0, 1000)
		for b.Loop() {
			if _, err := service.Known(b.Context(), list); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchDatabase(b *testing.B, server string) string {
	b.Helper()
	name := "b" + strings.ReplaceAll(uuid.NewString(), "-", "")
	clickhousetest.Query(b, server, "CREATE DATABASE "+name)
	b.Cleanup(func() { clickhousetest.Query(b, server, "DROP DATABASE "+name) })
	return name
}

// fill inserts events past the outbox, and makes their rows visible.
func fill(b *testing.B, s *Store, total int64) {
	b.Helper()
	if err := s.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	r, start := rand.New(rand.NewPCG(1, 2)), time.Now()
	var inserting time.Duration
	for row := int64(1); row <= total; {
		var list []event
		for ; row <= total && len(list) < 200_000; row++ {
			list = append(list, traffic(r, row, total))
		}
		before := time.Now()
		if err := s.insertAll(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		inserting += time.Since(before)
	}
	if err := s.raiseRows(b.Context(), total); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d events in %v, inserting %.0f events/s", total, time.Since(start), float64(total)/inserting.Seconds())
}

func logColumns(b *testing.B, server, name string, total int64) {
	b.Helper()
	b.Log(clickhousetest.Query(b, server, fmt.Sprintf(
		"SELECT name, round(data_compressed_bytes / %d, 1) FROM system.columns WHERE database = '%s' AND table = '%s'", total, name, eventTable)))
}
