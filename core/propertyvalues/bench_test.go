package propertyvalues_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/propertyvalues"
	"github.com/guidonhq/guidon/sdk"
)

// BenchmarkValues asks for values of a property that 12,000 events and their persons have: more
// than a sample.
func BenchmarkValues(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			d := open(b)
			p, e := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil), events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
			for n := 0; n < 12_000; n += 1_000 {
				batch := make([]*sdk.Event, 1_000)
				for i := range batch {
					id := fmt.Sprint("u", n+i)
					properties := fmt.Sprintf(`"$current_url":"https://example.com/pricing?from=%s","$browser":"Firefox","plan":"plan-%d"`, id, i%7)
					batch[i] = &sdk.Event{
						UUID: uuid.NewString(), ProjectID: 1, Name: "paid", DistinctID: id, PersonID: persons.PersonUUID(1, id),
						Timestamp: start.Add(time.Duration(n+i) * time.Second), ReceivedAt: start, Properties: []byte(`{` + properties + `,"$set":{` + properties + `}}`),
					}
				}
				if _, err := p.Process(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				if _, err := e.Store(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			v := propertyvalues.New(d, p, e)
			for name, read := range map[string]func() ([]propertyvalues.Value, error){
				"persons":           func() ([]propertyvalues.Value, error) { return v.OfPersons(b.Context(), 1, "plan", "PLAN") },
				"events":            func() ([]propertyvalues.Value, error) { return v.OfEvents(b.Context(), 1, "", "plan", "PLAN") },
				"events of a name":  func() ([]propertyvalues.Value, error) { return v.OfEvents(b.Context(), 1, "paid", "plan", "PLAN") },
				"persons, distinct": func() ([]propertyvalues.Value, error) { return v.OfPersons(b.Context(), 1, "$current_url", "") },
			} {
				b.Run(name, func(b *testing.B) {
					sampled := 0
					for b.Loop() {
						values, err := read()
						if err != nil || len(values) < 7 {
							b.Fatal(len(values), err)
						}
						sampled = 0
						for _, value := range values {
							sampled += value.Count
						}
					}
					b.ReportMetric(float64(sampled), "counted")
				})
			}
		})
	}
}
