package cohorts

import (
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// PersonViews shows persons.
type PersonViews interface {
	// Views returns the JSON form of persons of the project of the call.
	Views(c *web.Call, list []persons.Person) ([]persons.View, error)
}

// personsPage has no count: counting a dynamic cohort evaluates it for all persons.
type personsPage struct {
	Results  []persons.ActorView `json:"results"`
	Next     *string             `json:"next"`
	Previous *string             `json:"previous"`
}

// persons answers with a page of the persons in a cohort.
func (h *HTTP) persons(c *web.Call) error {
	if err := c.Principal.RequireScope("person:read"); err != nil {
		return err
	}
	id, err := idOf(c)
	if err != nil {
		return err
	}
	part := c.Page()
	q := audience.Query{Skip: part.Offset, Limit: part.Limit}
	if q.After, err = position(c.Query("after")); err != nil {
		return err
	}
	found, err := h.service.Persons(c.UserContext(), c.Project, id, q)
	if err != nil {
		return err
	}
	views, err := h.people.Views(c, found.Persons)
	if err != nil {
		return err
	}
	page := personsPage{Results: persons.Actors(views)}
	page.Next, page.Previous = links(c, q, &found)
	return web.JSON(c.Ctx, page)
}

// links returns the addresses of the pages around a part of a cohort. The next one
// names a position instead of an offset, so that it evaluates no person again.
func links(c *web.Call, q audience.Query, found *audience.Selection) (next, previous *string) {
	limit := strconv.Itoa(q.Limit)
	if !found.Complete {
		rest := ""
		if n := q.Skip - found.Skipped; n > 0 {
			rest = strconv.Itoa(n)
		}
		url := c.URLWith(map[string]string{"limit": limit, "after": positionText(found.After), "offset": rest})
		next = &url
	}
	if q.Skip > 0 && q.After.ID == 0 {
		offset := ""
		if n := q.Skip - q.Limit; n > 0 {
			offset = strconv.Itoa(n)
		}
		url := c.URLWith(map[string]string{"limit": limit, "offset": offset})
		previous = &url
	}
	return next, previous
}

// positionText returns a position as a parameter of a query: unix microseconds and a
// number.
func positionText(p persons.Position) string {
	if p.ID == 0 {
		return ""
	}
	return strconv.FormatInt(p.CreatedAt.UnixMicro(), 10) + "." + strconv.FormatInt(p.ID, 10)
}

func position(text string) (persons.Position, error) {
	if text == "" {
		return persons.Position{}, nil
	}
	at, id, _ := strings.Cut(text, ".")
	micros, errAt := strconv.ParseInt(at, 10, 64)
	number, errID := strconv.ParseInt(id, 10, 64)
	if errAt != nil || errID != nil || number < 1 {
		return persons.Position{}, fault.Field("after", "invalid_input", "Use the value of a next link.")
	}
	return persons.Position{CreatedAt: time.UnixMicro(micros).UTC(), ID: number}, nil
}
