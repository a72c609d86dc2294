package activity

import (
	"cmp"
	"context"

	"github.com/guidonhq/guidon/core/web"
)

// The number of entries of a page: by default and at most.
const (
	defaultLimit = 10
	maxLimit     = 1000
)

// page is the answer. It is not the list envelope of other endpoints: clients
// of the log count pages.
type page[V any] struct {
	Results    []V     `json:"results"`
	Next       *string `json:"next"`
	Previous   *string `json:"previous"`
	TotalCount int     `json:"total_count"`
}

type entryView struct {
	ID        string   `json:"id"`
	User      userView `json:"user"`
	Activity  string   `json:"activity"`
	Scope     Scope    `json:"scope"`
	ItemID    string   `json:"item_id"`
	Detail    Detail   `json:"detail"`
	CreatedAt web.Time `json:"created_at"`
}

type userView struct {
	FirstName string  `json:"first_name"`
	Email     *string `json:"email"`
	IsSystem  bool    `json:"is_system,omitempty"`
}

// Answer answers a request for a page of the log. It reads limit and page of the
// query and calls find with the part they select; find returns the entries,
// newest first, and how many there are in all. A page past the end is empty.
func Answer(c *web.Call, find func(ctx context.Context, limit, offset int) ([]Entry, int, error)) error {
	return answer(c, find, viewOf)
}

func answer[V any](c *web.Call, find func(ctx context.Context, limit, offset int) ([]Entry, int, error), show func(*Entry) V) error {
	limit, err := c.PositiveQuery("limit", defaultLimit)
	if err != nil {
		return err
	}
	number, err := c.PositiveQuery("page", 1)
	if err != nil {
		return err
	}
	limit = min(limit, maxLimit)
	entries, total, err := find(c.UserContext(), limit, (number-1)*limit)
	if err != nil {
		return err
	}
	v := page[V]{Results: make([]V, len(entries)), TotalCount: total}
	for i := range entries {
		v.Results[i] = show(&entries[i])
	}
	if number*limit < total {
		next := c.PageURL(number+1, limit)
		v.Next = &next
	}
	if number > 1 {
		last := max(total+limit-1, limit) / limit // a page past the end leads to the last one
		previous := c.PageURL(min(number-1, last), limit)
		v.Previous = &previous
	}
	return web.JSON(c.Ctx, v)
}

func viewOf(e *Entry) entryView {
	user := userView{FirstName: e.UserName, Email: &e.UserEmail}
	if e.UserID == 0 {
		user = userView{FirstName: cmp.Or(e.UserName, "System"), IsSystem: true}
	}
	return entryView{e.ID, user, e.Activity, e.Scope, e.ItemID, e.Detail, web.Time(e.CreatedAt)}
}
