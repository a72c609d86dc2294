package persons

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons/properties"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// maxFew is how many persons findFew reads.
const maxFew = 500

// findFew returns all persons that match q, newest first, and true if an index leaves at
// most maxFew of them: those of a distinct id or of an e-mail address. It reads the index
// first and then these persons, because the planner of SQLite prefers to read all persons
// in the order of the list. An address that more persons have is looked for among all
// persons, with the limits of a scan.
func (s *Service) findFew(ctx context.Context, projectID int64, q *Query) ([]Person, bool, error) {
	var found []Person
	var err error
	prefix, whole := properties.EmailPrefix(q.email)
	switch {
	case q.DistinctID != "":
		found, err = s.store.byDistinctID(ctx, projectID, q.DistinctID)
	case prefix != "":
		end := prefix + lastCharacter
		if whole { // the name ends, or the next one follows in a line of its own
			end = prefix + "\x0b"
		}
		var ids []int64
		if ids, err = s.store.byText(ctx, projectID, prefix, end, maxFew+1); err != nil || len(ids) > maxFew {
			return nil, false, err
		}
		found, err = s.ByIDs(ctx, projectID, ids)
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	found, err = q.filter(found)
	return found, true, err
}

// filter returns those of found that pass all conditions but the distinct id, newest first.
func (q *Query) filter(found []Person) ([]Person, error) {
	var budget match.Budget
	budget.Reset(maxFilterWork)
	filters := propertyfilter.NewAll(q.Properties, match.Env{Now: time.Now(), Budget: &budget})
	search := strings.ToLower(q.Search)
	found = slices.DeleteFunc(found, func(p Person) bool {
		return q.Identified != nil && p.IsIdentified != *q.Identified || !p.contains(search) || !filters.Match(p.Properties)
	})
	if budget.Refusal() != match.NotRefused {
		return nil, errFilterWork
	}
	slices.SortFunc(found, func(a, b Person) int { return b.Position().Compare(a.Position()) })
	return found, nil
}

// contains reports whether a distinct id or the search text of p contains a text in lower
// case.
func (p *Person) contains(text string) bool {
	if text == "" {
		return true
	}
	o, _ := properties.Parse(string(p.Properties))
	return strings.Contains(o.SearchText(), text) ||
		slices.ContainsFunc(p.DistinctIDs, func(id string) bool { return strings.Contains(strings.ToLower(id), text) })
}
