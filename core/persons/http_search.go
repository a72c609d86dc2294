package persons

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// maxSearch is the longest text to search for, in bytes: longer than all texts that are found.
const maxSearch = 1_000

// searchView is a page of a search. Its first fields are those of every list; count is the
// number of persons found on this page.
type searchView struct {
	Count    int      `json:"count"`
	Next     *string  `json:"next"`
	Previous *string  `json:"previous"`
	Results  []View   `json:"results"`
	Complete bool     `json:"complete"`
	Cursor   *string  `json:"cursor"`
	Searched int64    `json:"searched"`
	Total    *int     `json:"total"`
	Until    web.Time `json:"searched_until"`
}

// search answers a list with the parameter cursor.
func (h *HTTP) search(c *web.Call, q Query) error {
	from, err := parseCursor(c.Query("cursor"))
	if err != nil {
		return err
	}
	if len(q.Search) > maxSearch {
		return fault.Fieldf("search", "max_length", "Ensure this field has no more than %d bytes.", maxSearch)
	}
	found, err := h.persons.Search(c.UserContext(), c.Project.ID, q, from, c.Page().Limit)
	if err != nil {
		return err
	}
	out := searchView{Count: len(found.Persons), Complete: found.Next == nil, Searched: found.Looked, Until: web.Time(found.Until)}
	if found.Next != nil {
		cursor := formatCursor(found.Next)
		next := c.URLWith(map[string]string{"cursor": cursor})
		out.Cursor, out.Next = &cursor, &next
		total, err := h.persons.EstimateProject(c.UserContext(), c.Project.ID)
		if err != nil {
			return err
		}
		total = max(total, int(found.Looked))
		out.Total = &total
	}
	if out.Results, err = h.Views(c, found.Persons); err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

// formatCursor is numbers with dots between: the microsecond of the creation of the last
// person and its number, how many were looked at, and the numbers of those shown before.
func formatCursor(s *SearchCursor) string {
	at := int64(0)
	if s.Behind.ID != 0 {
		at = toMicros(s.Behind.CreatedAt)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d.%d", at, s.Behind.ID, s.Looked)
	for _, id := range s.Shown {
		fmt.Fprintf(&b, ".%d", id)
	}
	return b.String()
}

var errCursor = fault.Field("cursor", "invalid_input", "Invalid cursor.")

// parseCursor is the reverse of formatCursor; "" is the beginning.
func parseCursor(text string) (SearchCursor, error) {
	if text == "" {
		return SearchCursor{}, nil
	}
	var n []int64
	for part := range strings.SplitSeq(text, ".") {
		number, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(n) >= 3 && number < 1 || len(n) > 3+2*maxByIndex {
			return SearchCursor{}, errCursor
		}
		n = append(n, number)
	}
	if len(n) < 3 || n[1] < 0 || n[2] < 0 {
		return SearchCursor{}, errCursor
	}
	return SearchCursor{Behind: Position{time.UnixMicro(n[0]).UTC(), n[1]}, Looked: n[2], Shown: n[3:]}, nil
}
