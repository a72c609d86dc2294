package persons

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web/query"
)

// Query selects persons. Zero fields do not filter.
type Query struct {
	DistinctID string
	Search     string          // part of a distinct id, an e-mail address or a name, in any case
	Identified *bool           // nil: both
	Properties []*match.Filter // all of them have to pass
	email      string          // with which the search text begins, in any case; "" for any
}

// Find returns a page of the persons that match q, newest first, and their total
// number. With filters of properties it reads all persons of the project.
func (s *Service) Find(ctx context.Context, projectID int64, q Query, limit, offset int) ([]Person, int, error) {
	var page []Person
	var total int
	find := func(ctx context.Context) (err error) {
		page, total, err = s.find(ctx, projectID, &q, limit, offset)
		return err
	}
	found, few, err := s.findFew(ctx, projectID, &q)
	switch {
	case err != nil:
	case few:
		page, total = query.Cut(found, limit, offset), len(found)
	case q.scans():
		err = s.db.RunScan(ctx, projectID, find)
	default:
		err = find(ctx)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("find persons: %w", err)
	}
	return page, total, nil
}

// scans reports whether q reads all persons of the project, in the table or in an
// index.
func (q *Query) scans() bool {
	return len(q.Properties) > 0 || q.Search != "" || q.Identified != nil
}

func (s *Service) find(ctx context.Context, projectID int64, q *Query, limit, offset int) ([]Person, int, error) {
	if len(q.Properties) > 0 {
		return s.filterPersons(ctx, projectID, q, limit, offset)
	}
	total, err := s.store.countPersons(ctx, projectID, q)
	if err != nil || offset >= total {
		return []Person{}, total, err
	}
	page, err := s.store.findPersons(ctx, projectID, q, limit, offset)
	return page, total, err
}

// Count returns the number of persons of a project.
func (s *Service) Count(ctx context.Context, projectID int64) (int, error) {
	n := 0
	err := s.db.RunScan(ctx, projectID, func(ctx context.Context) (err error) {
		n, err = s.store.countPersons(ctx, projectID, &Query{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count persons: %w", err)
	}
	return n, nil
}

var errNoPerson = fault.New(fault.NotFound, "not_found", "Not found.")

// Get returns a person by its number or uuid, or NotFound.
func (s *Service) Get(ctx context.Context, projectID int64, ref string) (Person, error) {
	found, err := s.get(ctx, projectID, ref)
	switch {
	case err != nil:
		return Person{}, fmt.Errorf("read person %s: %w", ref, err)
	case len(found) == 0:
		return Person{}, errNoPerson
	}
	return found[0], nil
}

func (s *Service) get(ctx context.Context, projectID int64, ref string) ([]Person, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		return s.store.byID(ctx, projectID, id)
	}
	if id, err := uuid.Parse(ref); err == nil {
		return s.store.byUUID(ctx, projectID, id.String())
	}
	return nil, nil
}
