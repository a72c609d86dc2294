package propertyvalues

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"
)

const (
	maxSample  = 10_000 // persons or events that are read
	pageSize   = 500    // of them in memory
	sampleTime = 200 * time.Millisecond
)

// Service counts values. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	persons *persons.Service
	events  *events.Service
}

// New returns a Service over the persons and events of d.
func New(d *db.DB, p *persons.Service, e *events.Service) *Service { return &Service{d, p, e} }

// OfPersons returns values of a property of the newest persons whose text contains part in
// any case.
func (s *Service) OfPersons(ctx context.Context, projectID int64, key, part string) ([]Value, error) {
	c := newCounter(key, part)
	var last *persons.Person
	err := s.sample(ctx, projectID, func(ctx context.Context) (int, error) {
		page, err := s.persons.Newest(ctx, projectID, last, pageSize)
		for i := range page {
			c.add(page[i].Properties)
		}
		if len(page) > 0 {
			last = &page[len(page)-1]
		}
		return len(page), err
	})
	if err != nil {
		return nil, fmt.Errorf("read values of a property of persons: %w", err)
	}
	return c.top(), nil
}

// OfEvents is OfPersons for events, those with a name if that is not "".
func (s *Service) OfEvents(ctx context.Context, projectID int64, event, key, part string) ([]Value, error) {
	c := newCounter(key, part)
	filter := events.Filter{Event: event}
	err := s.sample(ctx, projectID, func(ctx context.Context) (int, error) {
		page, next, err := s.events.Records(ctx, projectID, filter, pageSize)
		for i := range page {
			c.add([]byte(page[i].Properties))
		}
		if filter.Cursor = next; next == (events.Cursor{}) {
			return 0, err
		}
		return len(page), err
	})
	if err != nil {
		return nil, fmt.Errorf("read values of a property of events: %w", err)
	}
	return c.top(), nil
}

// sample calls read, which returns how many it has read, until the sample is large enough or
// its time is over.
func (s *Service) sample(ctx context.Context, projectID int64, read func(ctx context.Context) (int, error)) error {
	return s.db.RunScan(ctx, projectID, func(ctx context.Context) error {
		end := time.Now().Add(sampleTime)
		for total := 0; total < maxSample && (total == 0 || time.Now().Before(end)); {
			if err := scan.Yield(ctx); err != nil {
				return err
			}
			n, err := read(ctx)
			if err != nil || n < pageSize {
				return err
			}
			total += n
		}
		return nil
	})
}
