package web

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// How long a page is when nobody asks, and how long it can be at most.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
)

// Page is the part of a list that was asked for.
type Page struct {
	Limit  int // 1 to LargestPage
	Offset int // 0 or more
}

// PageOf reads limit and offset of the query. A limit that is missing, no
// number, zero or negative is DefaultPage, a larger one than LargestPage is
// that; an offset that is no number or negative is 0. No number is an error.
func PageOf(c *fiber.Ctx) Page {
	p := Page{Limit: DefaultPageSize}
	if n, err := strconv.Atoi(c.Query("limit")); err == nil && n > 0 {
		p.Limit = min(n, MaxPageSize)
	}
	if n, err := strconv.Atoi(c.Query("offset")); err == nil && n > 0 {
		p.Offset = n
	}
	return p
}

// envelope is what every list is answered in.
type envelope struct {
	Count    int             `json:"count"`
	Next     *string         `json:"next"`
	Previous *string         `json:"previous"`
	Results  json.RawMessage `json:"results"`
}

func (g *Router) list(c *fiber.Ctx, p Page, count int, results any) error {
	items, err := encode(results)
	if err != nil {
		return err
	}
	if string(items) == "null" {
		items = []byte("[]")
	}
	e := envelope{Count: count, Results: items}
	base := g.baseURL(c) + c.Path()
	if p.Offset+p.Limit < count {
		next := base + turned(c, p.Limit, p.Offset+p.Limit)
		e.Next = &next
	}
	if p.Offset > 0 {
		previous := base + turned(c, p.Limit, p.Offset-p.Limit)
		e.Previous = &previous
	}
	return JSON(c, e)
}

// turned is the query of the request with another limit and offset; an offset
// of nothing is left out. The other parameters keep their place and spelling.
func turned(c *fiber.Ctx, limit, offset int) string {
	var kept []string
	for part := range strings.SplitSeq(string(c.Request().URI().QueryString()), "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); part == "" || (err == nil && (name == "limit" || name == "offset")) {
			continue
		}
		kept = append(kept, part)
	}
	kept = append(kept, "limit="+itoa(limit))
	if offset > 0 {
		kept = append(kept, "offset="+itoa(offset))
	}
	return "?" + strings.Join(kept, "&")
}
