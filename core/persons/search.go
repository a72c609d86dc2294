package persons

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// A search looks at persons in windows, newest first, and starts no window after its time:
// firstSearch for the first page, which people wait for, nextSearch for the others.
const (
	firstSearch, nextSearch  = 250 * time.Millisecond, time.Second
	textWindow, filterWindow = 4_000, 500 // persons of a window: whose text SQL compares; whose properties are read
	maxByIndex               = 10         // persons of the first page that an index finds, of each index
)

// SearchCursor is where a search goes on. The zero SearchCursor is its beginning.
type SearchCursor struct {
	Behind Position // the last person looked at
	Looked int64    // how many persons were looked at
	Shown  []int64  // the numbers of persons that an index found before their turn
}

// SearchPage is what a part of a search found.
type SearchPage struct {
	Persons []Person
	Looked  int64         // persons looked at since the beginning
	Until   time.Time     // the creation of the last of them, zero without any
	Next    *SearchCursor // nil after the last person
}

// Search looks for persons that match q, for a limited time, and returns at most limit of
// them. The first page begins with persons whose distinct id or names begin with the text of
// q, which indexes find; the others follow newest first. Persons that are created or deleted
// between two pages may be missed.
func (s *Service) Search(ctx context.Context, projectID int64, q Query, from SearchCursor, limit int) (SearchPage, error) {
	found, few, err := s.findFew(ctx, projectID, &q)
	if few && err == nil {
		return SearchPage{Persons: append([]Person{}, found...), Looked: int64(len(found))}, nil
	}
	page := SearchPage{Persons: []Person{}, Looked: from.Looked}
	if err == nil && from.Behind.ID == 0 && len(from.Shown) == 0 && q.Search != "" {
		page.Persons, err = s.searchIndexes(ctx, projectID, &q, limit)
	}
	if err == nil {
		for i := range page.Persons {
			from.Shown = append(from.Shown, page.Persons[i].ID)
		}
		err = s.db.RunScan(ctx, projectID, func(ctx context.Context) error { return s.searchNewest(ctx, projectID, &q, from, limit, &page) })
	}
	if err != nil {
		return SearchPage{}, fmt.Errorf("search persons: %w", err)
	}
	return page, nil
}

// searchIndexes returns persons whose distinct id or search text begins with the text of q.
func (s *Service) searchIndexes(ctx context.Context, projectID int64, q *Query, limit int) ([]Person, error) {
	ids, err := s.store.idsByPrefix(ctx, projectID, q.Search, maxByIndex)
	if err != nil {
		return nil, err
	}
	found, err := s.ByIDs(ctx, projectID, ids)
	if err != nil {
		return nil, err
	}
	found, err = q.filter(found)
	return append([]Person{}, found[:min(limit, len(found))]...), err
}

// searchNewest adds the persons behind from that match q to page.
func (s *Service) searchNewest(ctx context.Context, projectID int64, q *Query, from SearchCursor, limit int, page *SearchPage) error {
	begun := len(page.Persons)
	deadline := time.Now().Add(nextSearch)
	if from.Looked == 0 {
		deadline = time.Now().Add(firstSearch)
	}
	var budget match.Budget
	budget.Reset(maxFilterWork)
	filters := propertyfilter.NewAll(q.Properties, match.Env{Now: time.Now(), Budget: &budget})
	for first := true; len(page.Persons) < limit && (first || time.Now().Before(deadline)); first = false {
		if err := scan.Yield(ctx); err != nil {
			return err
		}
		w, err := s.searchWindow(ctx, projectID, q, from, filters, limit-len(page.Persons))
		switch {
		case err != nil:
			return err
		case budget.Refusal() != match.NotRefused && first:
			return errFilterWork
		case budget.Refusal() != match.NotRefused: // the next page begins here, with a budget of its own
			page.Next = &from
			return s.store.addDistinctIDs(ctx, page.Persons[begun:])
		}
		page.Persons = append(page.Persons, w.found...)
		page.Looked = from.Looked + w.looked
		if w.behind.ID != 0 {
			page.Until = w.behind.CreatedAt
		}
		if w.last {
			page.Next = nil
			return s.store.addDistinctIDs(ctx, page.Persons[begun:])
		}
		from.Behind, from.Looked = w.behind, page.Looked
	}
	page.Next = &from
	return s.store.addDistinctIDs(ctx, page.Persons[begun:])
}

// window is what a search found in a window.
type window struct {
	found  []Person
	looked int64
	behind Position
	last   bool // no person is behind
}

// searchWindow looks at the persons of the window behind from, and not behind the person
// that fills the page.
func (s *Service) searchWindow(ctx context.Context, projectID int64, q *Query, from SearchCursor, filters *propertyfilter.All, limit int) (window, error) {
	size, read := textWindow, limit+len(from.Shown)
	if len(q.Properties) > 0 {
		size, read = filterWindow, filterWindow
	}
	end, err := s.store.windowEnd(ctx, projectID, from.Behind, size)
	if err != nil {
		return window{}, err
	}
	rows, err := s.store.findBetween(ctx, projectID, q, from.Behind, end, read)
	if err != nil {
		return window{}, err
	}
	w := window{looked: int64(size), behind: end, last: end.ID == 0}
	pacer := scan.PacerOf(ctx)
	for i := range rows {
		pacer.Pace()
		if slices.Contains(from.Shown, rows[i].ID) || !filters.Match(rows[i].Properties) {
			continue
		}
		if w.found = append(w.found, rows[i]); len(w.found) == limit {
			w.behind, w.last = rows[i].Position(), false
			break
		}
	}
	if w.behind != end || w.last {
		w.looked, err = s.store.countBetween(ctx, projectID, from.Behind, w.behind)
	}
	return w, err
}
