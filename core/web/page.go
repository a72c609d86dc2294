package web

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/request"
)

// Sizes of a page: without a limit in the query, and at most.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
)

// Page is the requested part of a list.
type Page struct {
	Limit  int // 1 to MaxPageSize
	Offset int // 0 to math.MaxInt32
}

// PageOf reads limit and offset of the query. A missing or invalid limit is
// DefaultPageSize, one above MaxPageSize is MaxPageSize; an invalid offset is 0.
func PageOf(c *fiber.Ctx) Page {
	p := Page{Limit: DefaultPageSize}
	if n, err := strconv.Atoi(c.Query("limit")); err == nil && n > 0 {
		p.Limit = min(n, MaxPageSize)
	}
	if n, err := strconv.Atoi(c.Query("offset")); err == nil && n > 0 {
		p.Offset = min(n, math.MaxInt32) // adding a limit does not overflow
	}
	return p
}

// listEnvelope is the JSON form of every list.
type listEnvelope struct {
	Count    int             `json:"count"`
	Next     *string         `json:"next"`
	Previous *string         `json:"previous"`
	Results  json.RawMessage `json:"results"`
}

func (r *Router) list(c *fiber.Ctx, p Page, count int, results any) error {
	items, err := encode(results)
	if err != nil {
		return err
	}
	if string(items) == "null" {
		items = []byte("[]")
	}
	e := listEnvelope{Count: count, Results: items}
	base, query := r.BaseURL(c)+c.Path(), string(c.Request().URI().QueryString())
	if p.Offset+p.Limit < count {
		next := base + request.PageQuery(query, p.Limit, p.Offset+p.Limit, credential.PersonalField)
		e.Next = &next
	}
	if p.Offset > 0 {
		last := max(count-1, 0) / p.Limit * p.Limit // a page past the end leads to the last one
		previous := base + request.PageQuery(query, p.Limit, min(p.Offset-p.Limit, last), credential.PersonalField)
		e.Previous = &previous
	}
	return JSON(c, e)
}

func itoa[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
