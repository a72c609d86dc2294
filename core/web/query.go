package web

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/credential"
)

// PositiveQuery reads a whole number of at least 1 from the query, fallback if
// it is missing. Anything else is Invalid.
func (c *Call) PositiveQuery(name string, fallback int) (int, error) {
	s := c.Query(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n > math.MaxInt32+1:
		return 0, fault.Field(name, "invalid_input", "A valid integer is required.")
	case n < 1:
		return 0, fault.Field(name, "min_value", "Ensure this value is greater than or equal to 1.")
	}
	return n, nil
}

// PageURL returns the absolute address of the request with another page and
// limit.
func (c *Call) PageURL(page, limit int) string {
	return c.URLWith(map[string]string{"page": strconv.Itoa(page), "limit": strconv.Itoa(limit)})
}

// URLWith returns the absolute address of the request with other parameters of the
// query. An empty value removes one. It never has a personal key.
func (c *Call) URLWith(parameters map[string]string) string {
	q := url.Values{}
	for name, value := range c.Queries() {
		q.Set(strings.Clone(name), strings.Clone(value)) // their memory belongs to the request
	}
	q.Del(credential.PersonalField) // links are copied and logged
	for name, value := range parameters {
		q.Set(name, value)
		if value == "" {
			q.Del(name)
		}
	}
	return c.BaseURL() + c.Path() + "?" + q.Encode()
}
