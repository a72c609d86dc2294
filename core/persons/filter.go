package persons

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// filterPersons reads all persons, newest first, and returns a page of those that
// pass the property filters, and their total number.
func (s *Service) filterPersons(ctx context.Context, projectID int64, q *Query, limit, offset int) ([]Person, int, error) {
	filters := propertyfilter.NewAll(q.Properties, match.Env{Now: time.Now()})
	rest := *q
	rest.Properties = nil
	out, total := []Person{}, 0
	var last *Person
	for {
		page, err := s.store.findAfter(ctx, projectID, &rest, last, walkPage)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			if !filters.Match(page[i].Properties) {
				continue
			}
			if total >= offset && len(out) < limit {
				out = append(out, page[i])
			}
			total++
		}
		if len(page) < walkPage {
			break
		}
		last = &page[len(page)-1]
	}
	return out, total, s.store.addDistinctIDs(ctx, out)
}
