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
	maxSample  = 10_000  // persons or events that are read
	firstPage  = 8       // of the first read
	pageSize   = 200     // of one read, at most
	pageBytes  = 2 << 20 // of one read, about
	sampleTime = 200 * time.Millisecond
)

// Service counts values. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	persons *persons.Service
	events  *events.Service
	time    time.Duration // of a sample
}

// New returns a Service over the persons and events of d.
func New(d *db.DB, p *persons.Service, e *events.Service) *Service {
	return &Service{d, p, e, sampleTime}
}

// OfPersons returns values of a property of the newest persons whose text contains part in
// any case.
func (s *Service) OfPersons(ctx context.Context, projectID int64, key, part string) ([]Value, error) {
	c := newCounter(key, part)
	var last *persons.Person
	err := s.sample(ctx, projectID, func(ctx context.Context, p *sampleSize) error {
		page, err := s.persons.Newest(ctx, projectID, last, p.limit)
		for i := 0; i < len(page) && p.add(len(page[i].Properties)); i++ {
			c.add(page[i].Properties)
		}
		if len(page) > 0 {
			last = &page[len(page)-1]
		}
		p.end(len(page), len(page) < p.limit)
		return err
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
	err := s.sample(ctx, projectID, func(ctx context.Context, p *sampleSize) error {
		page, next, err := s.events.Records(ctx, projectID, filter, p.limit)
		for i := 0; i < len(page) && p.add(len(page[i].Properties)); i++ {
			c.add([]byte(page[i].Properties))
		}
		filter.Cursor = next
		p.end(len(page), next == events.Cursor{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read values of a property of events: %w", err)
	}
	return c.top(), nil
}

// sample calls read until the sample is large enough or its time is over.
func (s *Service) sample(ctx context.Context, projectID int64, read func(ctx context.Context, p *sampleSize) error) error {
	return s.db.RunScan(ctx, projectID, func(ctx context.Context) error {
		p := newSampleSize(time.Now().Add(s.time))
		for !p.done {
			if err := scan.Yield(ctx); err != nil {
				return err
			}
			if err := read(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// sampleSize chooses how many persons or events the next read has: four times as many as
// the last one had, and not more than fit into pageBytes if they are as large.
type sampleSize struct {
	limit int  // of the next read
	done  bool // there is no next read
	until time.Time
	total int // that were read
	bytes int // of this read
}

func newSampleSize(until time.Time) *sampleSize { return &sampleSize{limit: firstPage, until: until} }

// add notes one that was read, and returns false if there is no time for it. The first read is
// counted whole.
func (p *sampleSize) add(size int) bool {
	p.bytes += size
	return p.total == 0 || time.Now().Before(p.until)
}

// end notes the end of a read of n, the last one if there are no more.
func (p *sampleSize) end(n int, last bool) {
	p.total += n
	p.done = last || p.total >= maxSample || !time.Now().Before(p.until)
	p.limit = min(4*p.limit, pageSize, maxSample-p.total)
	if p.bytes > 0 {
		p.limit = max(1, min(p.limit, n*pageBytes/p.bytes))
	}
	p.bytes = 0
}
