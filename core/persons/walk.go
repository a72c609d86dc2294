package persons

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
)

// walkPage is the number of persons or groups in memory at a time.
const walkPage = 500

// Walk calls fn for all persons of the project in pages until fn returns an error,
// which Walk returns. fn must not keep a page. Persons that are created or deleted
// during the walk may be missed; no person is passed twice. It is a scan: it fails
// with an Unavailable fault if too many of them run.
func (s *Service) Walk(ctx context.Context, projectID int64, fn func(page []Person) error) error {
	return s.walkPages(ctx, projectID, fn, s.store.walk)
}

// WalkProperties is Walk without the distinct ids of the persons.
func (s *Service) WalkProperties(ctx context.Context, projectID int64, fn func(page []Person) error) error {
	return s.walkPages(ctx, projectID, fn, s.store.walkProperties)
}

// Position is a place in the order of a walk, which is that of creation. The zero
// Position is before all persons.
type Position struct {
	CreatedAt time.Time // in microseconds
	ID        int64
}

// Position returns the place of the person in a walk.
func (p *Person) Position() Position { return Position{p.CreatedAt, p.ID} }

// Compare orders positions: -1 if p is before o, 0 if they are equal, else 1.
func (p Position) Compare(o Position) int {
	return cmp.Or(p.CreatedAt.Compare(o.CreatedAt), cmp.Compare(p.ID, o.ID))
}

// WalkAfter is Walk for the persons after a position.
func (s *Service) WalkAfter(ctx context.Context, projectID int64, after Position, fn func(page []Person) error) error {
	var last *Person
	if after.ID != 0 {
		last = &Person{ID: after.ID, CreatedAt: after.CreatedAt}
	}
	return s.walkPagesAfter(ctx, projectID, last, fn, s.store.walk)
}

func (s *Service) walkPages(ctx context.Context, projectID int64, fn func(page []Person) error,
	read func(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error),
) error {
	return s.walkPagesAfter(ctx, projectID, nil, fn, read)
}

func (s *Service) walkPagesAfter(ctx context.Context, projectID int64, last *Person, fn func(page []Person) error,
	read func(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error),
) error {
	return s.db.RunScan(ctx, projectID, func(ctx context.Context) error {
		return walkAll(ctx, projectID, last, fn, read)
	})
}

func walkAll(ctx context.Context, projectID int64, last *Person, fn func(page []Person) error,
	read func(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error),
) error {
	for {
		if err := scan.Yield(ctx); err != nil {
			return fmt.Errorf("walk persons: %w", err)
		}
		page, err := read(ctx, projectID, last, walkPage)
		if err != nil {
			return fmt.Errorf("walk persons: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := fn(page); err != nil {
			return err
		}
		last = &Person{ID: page[len(page)-1].ID, CreatedAt: page[len(page)-1].CreatedAt}
	}
}

// Newest returns at most limit persons in the order of their creation, newest first, behind
// last, from the newest if that is nil, without their distinct ids.
func (s *Service) Newest(ctx context.Context, projectID int64, last *Person, limit int) ([]Person, error) {
	page, err := s.store.findAfter(ctx, projectID, &Query{}, last, limit)
	if err != nil {
		return nil, fmt.Errorf("read the newest persons: %w", err)
	}
	return page, nil
}

// ByDistinctID returns the person of a distinct id, false if there is none.
func (s *Service) ByDistinctID(ctx context.Context, projectID int64, distinctID string) (Person, bool, error) {
	p, err := s.store.byDistinctID(ctx, projectID, distinctID)
	if err != nil {
		return Person{}, false, fmt.Errorf("read the person of distinct id %q: %w", distinctID, err)
	}
	if len(p) == 0 {
		return Person{}, false, nil
	}
	return p[0], true, nil
}

// ResolveDistinctIDs returns the persons of distinct ids, by distinct id, without
// their properties. Ids without a person are omitted.
func (s *Service) ResolveDistinctIDs(ctx context.Context, projectID int64, distinctIDs []string) (map[string]Ref, error) {
	refs, err := s.store.resolve(ctx, projectID, distinctIDs)
	if err != nil {
		return nil, fmt.Errorf("resolve distinct ids: %w", err)
	}
	return refs, nil
}
