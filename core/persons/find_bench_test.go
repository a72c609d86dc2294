package persons_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// BenchmarkFind searches in GUIDON_BENCH_PERSONS persons (100,000).
func BenchmarkFind(b *testing.B) {
	n := 100_000
	if text := os.Getenv("GUIDON_BENCH_PERSONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	onBoth(b, "find", func(b *testing.B, d *db.DB) {
		s := service(b, d)
		insertPersons(b, d, n)
		b.Run("distinct id", func(b *testing.B) {
			for b.Loop() {
				if page, _, err := s.Find(b.Context(), 1, persons.Query{DistinctID: fmt.Sprint("person-", n/2)}, 50, 0); err != nil || len(page) != 1 {
					b.Fatal(len(page), err)
				}
			}
		})
		b.Run("number of all", func(b *testing.B) {
			for b.Loop() {
				if got, err := s.EstimateProject(b.Context(), 1); err != nil || got < n*9/10 {
					b.Fatal(got, err)
				}
			}
		})
		filter := func(value string) persons.Query {
			f, err := match.CompileFilter([]byte(`{"key":"plan","value":"`+value+`"}`), match.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return persons.Query{Properties: []*match.Filter{f}}
		}
		identified := true
		for _, c := range []struct {
			name string
			q    persons.Query
		}{
			{"text of many", persons.Query{Search: "example.com"}},
			{"text of one", persons.Query{Search: fmt.Sprint("person-", n/2)}},
			{"text of none", persons.Query{Search: "nobody-has-this"}},
			{"property of many", filter("plan-3")},
			{"property of none", filter("plan-9")},
			{"identified", persons.Query{Identified: &identified}},
		} {
			middle := persons.SearchCursor{Behind: persons.Position{CreatedAt: time.UnixMicro(1_000_000 + int64(n/2)).UTC(), ID: 1001 + int64(n/2)}, Looked: int64(n / 2)}
			b.Run(c.name+"/first", func(b *testing.B) { benchSearch(b, s, c.q, persons.SearchCursor{}) })
			b.Run(c.name+"/later", func(b *testing.B) { benchSearch(b, s, c.q, middle) })
			if !strings.HasSuffix(c.name, "none") && c.name != "identified" {
				b.Run(c.name+"/all", func(b *testing.B) {
					for b.Loop() {
						if page, _, err := s.Find(b.Context(), 1, c.q, 50, 0); err != nil || len(page) == 0 {
							b.Fatal(len(page), err)
						}
					}
				})
			}
		}
		if d.Postgres() {
			var steps string
			for _, name := range []string{"0113_persons_by_prefix", "0114_persons_by_label"} {
				step, err := os.ReadFile("../../migrations/postgres/" + name + ".up.sql")
				if err != nil {
					b.Fatal(err)
				}
				steps += string(step)
			}
			b.Run("migrations 0113 and 0114", func(b *testing.B) {
				for b.Loop() {
					if _, err := d.Write(b.Context()).ExecContext(b.Context(), steps); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// benchSearch measures a page of a search and reports how many persons it looked at, and the
// longest of the pages.
func benchSearch(b *testing.B, s *persons.Service, q persons.Query, from persons.SearchCursor) {
	var longest time.Duration
	var looked int64
	for b.Loop() {
		begin := time.Now()
		page, err := s.Search(b.Context(), 1, q, from, 50)
		if err != nil {
			b.Fatal(err)
		}
		longest, looked = max(longest, time.Since(begin)), looked+page.Looked-from.Looked
	}
	b.ReportMetric(float64(looked)/float64(b.N), "persons/op")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}

// insertPersons inserts n persons of project 1, each with a distinct id.
func insertPersons(tb testing.TB, d *db.DB, n int) {
	tb.Helper()
	series := fmt.Sprintf("WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM s WHERE n+1 < %d) ", n)
	if d.Postgres() {
		series = fmt.Sprintf("WITH s AS (SELECT n FROM generate_series(0, %d) AS n) ", n-1)
	}
	begin := time.Now()
	for _, into := range []string{
		`INSERT INTO persons (id, project_id, uuid, created_at, updated_at, label, properties) ` + series +
			`SELECT n+1001, 1, 'uuid-' || n, 1000000 + n, 0, 'person-' || n || '@example.com' || char(10) || 'person ' || n,
			'{"email":"person-' || n || '@example.com","plan":"plan-' || (n % 5) || '","name":"Person ' || n || '","$creator_event_uuid":"019aab10-5b3f-7c9f-a0ac-1e1a3c4d5e6f"}' FROM s`,
		`INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at) ` + series + `SELECT 1, 'person-' || n, n+1001, 0 FROM s`,
	} {
		if d.Postgres() {
			into = strings.ReplaceAll(into, "char(10)", "chr(10)")
		}
		if _, err := d.Write(tb.Context()).ExecContext(tb.Context(), into); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := d.Write(tb.Context()).ExecContext(tb.Context(), "ANALYZE"); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%d persons inserted in %s", n, time.Since(begin))
}
