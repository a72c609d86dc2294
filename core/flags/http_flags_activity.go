package flags

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// activityView is a page of the activity log. It is not the list envelope:
// readers of the log count pages.
type activityView struct {
	Results    []Entry `json:"results"`
	Next       *string `json:"next"`
	Previous   *string `json:"previous"`
	TotalCount int     `json:"total_count"`
}

// How many entries a page of the log has when nobody asks, and at most.
const (
	activityPage = 10
	activityMost = 1000
)

func (h *HTTP) projectActivity(c *web.Call) error { return h.activityOf(c, 0) }

func (h *HTTP) activity(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	return h.activityOf(c, id)
}

func (h *HTTP) activityOf(c *web.Call, id int64) error {
	limit, err := atLeastOne(c, "limit", activityPage)
	if err != nil {
		return err
	}
	page, err := atLeastOne(c, "page", 1)
	if err != nil {
		return err
	}
	limit = min(limit, activityMost)
	entries, total, err := h.service.Activity(c.UserContext(), c.Project, id, page, limit)
	if err != nil {
		return err
	}
	v := activityView{Results: entries, TotalCount: total}
	if page*limit < total {
		v.Next = turned(c, page+1, limit)
	}
	if page > 1 {
		v.Previous = turned(c, page-1, limit)
	}
	return web.JSON(c.Ctx, v)
}

// atLeastOne reads a positive number out of the query.
func atLeastOne(c *web.Call, name string, fallback int) (int, error) {
	s := c.Query(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n > 1<<31:
		return 0, fault.Field(name, codeInvalid, "A valid integer is required.")
	case n < 1:
		return 0, fault.Field(name, "min_value", "Ensure this value is greater than or equal to 1.")
	}
	return n, nil
}

// turned is the absolute address of another page of the log.
func turned(c *web.Call, page, limit int) *string {
	q := url.Values{}
	for name, values := range c.Queries() {
		q.Set(strings.Clone(name), strings.Clone(values))
	}
	q.Set("page", strconv.Itoa(page))
	q.Set("limit", strconv.Itoa(limit))
	address := c.BaseURL() + c.Path() + "?" + q.Encode()
	return &address
}
