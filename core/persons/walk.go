package persons

import (
	"context"
	"fmt"
)

// walkPage is how many persons or groups are in memory at a time.
const walkPage = 500

// Walk calls fn for every person of the project, in pages, until fn returns an
// error, which Walk returns. A page must not be kept. Persons that come or go
// meanwhile may or may not be seen; no person is seen twice.
func (s *Service) Walk(ctx context.Context, projectID int64, fn func(page []Person) error) error {
	after := int64(0)
	for {
		page, err := s.store.walk(ctx, projectID, after, walkPage)
		if err != nil {
			return fmt.Errorf("walk persons: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := fn(page); err != nil {
			return err
		}
		after = page[len(page)-1].ID
	}
}

// ByDistinctID returns the person behind a distinct id; false when there is none.
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

// ResolveDistinctIDs returns the persons behind distinct ids, by distinct id, without
// reading their properties. Ids without a person are left out.
func (s *Service) ResolveDistinctIDs(ctx context.Context, projectID int64, distinctIDs []string) (map[string]Ref, error) {
	refs, err := s.store.resolve(ctx, projectID, distinctIDs)
	if err != nil {
		return nil, fmt.Errorf("resolve distinct ids: %w", err)
	}
	return refs, nil
}
