package persons

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// maxFilterWork is the work on texts that the filters of one request may cause, in
// units of match.Budget: about three seconds at worst.
const maxFilterWork = 300_000_000

var errFilterWork = fault.Field("properties", "filter_too_expensive",
	"Comparing the properties of all persons with these filters takes too much work, or a text is too long for a regular expression. Use fewer or simpler filters.")

// filterPersons reads all persons, newest first, and returns a page of those that
// pass the property filters, and their total number.
func (s *Service) filterPersons(ctx context.Context, projectID int64, q *Query, limit, offset int) ([]Person, int, error) {
	var budget match.Budget
	budget.Reset(maxFilterWork)
	filters := propertyfilter.NewAll(q.Properties, match.Env{Now: time.Now(), Budget: &budget})
	rest := *q
	rest.Properties = nil
	out, total := []Person{}, 0
	var last *Person
	pacer := scan.PacerOf(ctx)
	for {
		if err := scan.Yield(ctx); err != nil {
			return nil, 0, err
		}
		page, err := s.store.findAfter(ctx, projectID, &rest, last, walkPage)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			pacer.Pace()
			if !filters.Match(page[i].Properties) {
				continue
			}
			if total >= offset && len(out) < limit {
				out = append(out, page[i])
			}
			total++
		}
		if budget.Refusal() != match.NotRefused {
			return nil, 0, errFilterWork
		}
		if len(page) < walkPage {
			break
		}
		last = &page[len(page)-1]
	}
	return out, total, s.store.addDistinctIDs(ctx, out)
}
