package events

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// withQueryTimeout bounds one query.
func (s *Service) withQueryTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.QueryTimeout)
}

// List returns at most limit events, newest first by their timestamp, and the
// cursor of the next page, the zero Cursor after the last one. PersonID is the
// current person of the event. With property filters, one call reads a bounded
// number of events: it may return fewer events than limit, or none, with a cursor
// that continues.
func (s *Service) List(ctx context.Context, projectID int64, f Filter, limit int) ([]sdk.Event, Cursor, error) {
	rows, next, err := s.Records(ctx, projectID, f, limit)
	if err != nil {
		return nil, Cursor{}, err
	}
	out := make([]sdk.Event, len(rows))
	for i := range rows {
		out[i] = rows[i].ToEvent()
	}
	return out, next, nil
}

// Records is List with the stored form of the events.
func (s *Service) Records(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, Cursor, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	var rows []Record
	var next Cursor
	var err error
	if len(f.Properties) > 0 {
		err = s.db.RunScan(ctx, projectID, func(ctx context.Context) (err error) {
			rows, next, err = s.search(ctx, projectID, f, limit)
			return err
		})
	} else {
		rows, next, err = s.page(ctx, projectID, f, limit)
	}
	if err != nil {
		return nil, Cursor{}, fmt.Errorf("list events: %w", err)
	}
	return rows, next, nil
}

// page returns at most limit events, and the cursor of the next page.
func (s *Service) page(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, Cursor, error) {
	rows, err := s.backend.List(ctx, projectID, f, limit+1)
	if err != nil || len(rows) <= limit {
		return rows, Cursor{}, err
	}
	return rows[:limit], rows[limit-1].cursor(), nil
}

// Get returns the event with a uuid, or NotFound.
func (s *Service) Get(ctx context.Context, projectID int64, id string) (sdk.Event, error) {
	row, err := s.Record(ctx, projectID, id)
	if err != nil {
		return sdk.Event{}, err
	}
	return row.ToEvent(), nil
}

// Record is Get with the stored form of the event.
func (s *Service) Record(ctx context.Context, projectID int64, id string) (Record, error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return Record{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	rows, err := s.backend.Get(ctx, projectID, u)
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("read event %s: %w", id, err)
	case len(rows) == 0:
		return Record{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return rows[0], nil
}

// Tail returns at most limit events stored after the given row, oldest first. A
// projectID of 0 means all projects. Repeated calls, the first after the row of
// Last, follow the events that arrive. On Postgres with several nodes, an event
// whose transaction commits after that of a later row may be missed.
func (s *Service) Tail(ctx context.Context, projectID, after int64, limit int) ([]Stored, error) {
	rows, err := s.RecordsAfter(ctx, projectID, after, limit)
	out := make([]Stored, len(rows))
	for i := range rows {
		out[i] = Stored{Row: rows[i].ID, Event: rows[i].ToEvent()}
	}
	return out, err
}

// RecordsAfter is Tail with the stored form of the events.
func (s *Service) RecordsAfter(ctx context.Context, projectID, after int64, limit int) ([]Record, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	rows, err := s.backend.After(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the newest events: %w", err)
	}
	return rows, nil
}

// Last returns the row of the event stored last, 0 in an empty store.
func (s *Service) Last(ctx context.Context) (int64, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	row, err := s.backend.Last(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the newest event: %w", err)
	}
	return row, nil
}

// LastSeen returns the newest timestamp of the events of each distinct id that has
// any.
func (s *Service) LastSeen(ctx context.Context, projectID int64, distinctIDs []string) (map[string]time.Time, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	out, err := s.backend.LastSeen(ctx, projectID, distinctIDs)
	if err != nil {
		return nil, fmt.Errorf("read when persons were last seen: %w", err)
	}
	return out, nil
}

// Count returns how many events pass the filter; its cursor and its
// property filters are ignored.
func (s *Service) Count(ctx context.Context, projectID int64, f Filter) (int64, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	f.Cursor = Cursor{}
	var n int64
	err := s.db.RunScan(ctx, projectID, func(ctx context.Context) (err error) {
		n, err = s.backend.Count(ctx, projectID, f)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count events: %w", err)
	}
	return n, nil
}
