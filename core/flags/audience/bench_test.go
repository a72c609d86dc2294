package audience_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// BenchmarkCount compares a count with the same filter in the list of persons, in
// turn in one run, and reports the ratio of their times.
func BenchmarkCount(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) { benchCount(b, open(b), 20_000) })
	}
}

func benchCount(b *testing.B, d *db.DB, n int) {
	ctx := context.Background()
	addPersons(b, d, n)
	people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	const filter = `{"key":"plan","type":"person","operator":"exact","value":"pro"}`
	compiled, err := match.CompileFilter([]byte(filter), match.Options{})
	if err != nil {
		b.Fatal(err)
	}
	counter := audience.New(time.Minute, audience.Dependencies{Persons: people, Source: definitions{manyFlags(200)}})
	var counting, listing time.Duration
	for b.Loop() {
		begin := time.Now()
		a, err := counter.Count(ctx, 1, audience.Condition(json.RawMessage("["+filter+"]"), nil), nil)
		if err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		_, total, err := people.Find(ctx, 1, persons.Query{Properties: []*match.Filter{compiled}}, 1, 0)
		if err != nil || int64(total) != a.Affected || a.Total != int64(n) || a.Estimated {
			b.Fatalf("%d of %d listed, %+v counted (%v)", total, n, a, err)
		}
		counting, listing = counting+middle.Sub(begin), listing+time.Since(middle)
	}
	b.ReportMetric(float64(counting)/float64(listing), "count/list")
	b.ReportMetric(float64(counting.Microseconds())/float64(b.N)/1000, "count-ms")
	b.ReportMetric(float64(listing.Microseconds())/float64(b.N)/1000, "list-ms")
	b.ReportMetric(0, "ns/op")
}

// addPersons stores n persons with two distinct ids each; every third is a pro.
func addPersons(tb testing.TB, d *db.DB, n int) {
	tb.Helper()
	ctx := tb.Context()
	err := d.Tx(ctx, func(ctx context.Context) error {
		for i := 1; i <= n; i++ {
			plan := []string{"pro", "free", "trial"}[i%3]
			properties := fmt.Sprintf(`{"email":"person%d@example.com","plan":%q,"visits":%d,"country":"NO","$initial_referrer":"$direct"}`, i, plan, i)
			if _, err := d.Write(ctx).NewRaw(`INSERT INTO persons (id, project_id, uuid, created_at, updated_at, properties) VALUES (?, 1, ?, ?, 0, ?)`,
				i, fmt.Sprintf("a0000000-0000-0000-0000-%012d", i), i, properties).Exec(ctx); err != nil {
				return err
			}
			if _, err := d.Write(ctx).NewRaw("INSERT INTO person_distinct_ids VALUES (1, ?, ?, 0), (1, ?, ?, 1)",
				fmt.Sprint("user-", i), i, fmt.Sprint("anonymous-", i), i).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// definitions are fixed definitions of a project.
type definitions struct{ eval.ProjectDefinitions }

func (d definitions) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	return d.ProjectDefinitions, nil
}

func manyFlags(n int) eval.ProjectDefinitions {
	var d eval.ProjectDefinitions
	for i := range n {
		d.Flags = append(d.Flags, eval.Definition{ID: int64(i + 1), ProjectID: 1, Key: fmt.Sprint("flag-", i), Active: true, Filters: json.RawMessage(
			fmt.Sprintf(`{"groups":[{"properties":[{"key":"property-%d","type":"person","operator":"exact","value":"x"}],"rollout_percentage":30}]}`, i))})
	}
	d.Cohorts = []eval.CohortDefinition{{ID: 1, Static: true}}
	return d
}
