package audience_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/persons"
)

// limitedPeople reads persons in pages, with a place of a limiter.
type limitedPeople struct {
	people
	limiter *scan.Limiter
}

func (p *limitedPeople) pages(ctx context.Context, fn func([]persons.Person) error) error {
	ctx, end, err := p.limiter.Begin(ctx, 1)
	if err != nil {
		return err
	}
	defer end()
	for page := range slices.Chunk(p.list, 7) {
		if err := scan.Yield(ctx); err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond) // the read of a page, after which Yield gives the place away
		if err := fn(slices.Clone(page)); err != nil {
			return err
		}
	}
	return nil
}

func (p *limitedPeople) WalkProperties(ctx context.Context, _ int64, fn func([]persons.Person) error) error {
	return p.pages(ctx, fn)
}

func (p *limitedPeople) WalkAfter(ctx context.Context, _ int64, _ persons.Position, fn func([]persons.Person) error) error {
	return p.pages(ctx, fn)
}

// A count that waits for its place, before its first page and between two pages, counts
// all persons: its budget is for work.
func TestWaitsDoNotSpendTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stored := limitedPeople{limiter: scan.New(scan.Config{Places: 1, Queue: 10, MaxWait: time.Minute})}
		for i := range int64(21) {
			age := 20 + 20*(i/7) // the first page has no member
			stored.list = append(stored.list, persons.Person{ID: i + 1, DistinctIDs: []string{fmt.Sprint("u", i)}, Properties: fmt.Appendf(nil, `{"age":%d}`, age)})
		}
		counter := audience.New(2*time.Second, audience.Dependencies{Persons: &stored, Source: definitions{project()}, StaticCohorts: &stored, HashKeys: &stored})
		busy, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for project := range int64(3) { // scans of five seconds, one after the other
			others.Go(func() {
				for busy.Err() == nil {
					if _, end, err := stored.limiter.Begin(busy, 2+project); err == nil {
						time.Sleep(5 * time.Second)
						end()
					}
				}
			})
		}
		synctest.Wait()
		n, err := counter.CountCohort(t.Context(), 1, 10)
		if err != nil || n != 14 {
			t.Errorf("%d persons, %v, want 14", n, err)
		}
		got, err := counter.SelectCohort(t.Context(), 1, 10, audience.Query{Limit: 100})
		if err != nil || len(got.Persons) != 14 || !got.Complete {
			t.Errorf("%d persons selected, complete %t, %v, want 14", len(got.Persons), got.Complete, err)
		}
		stop()
		others.Wait()
	})
}
