package web

import (
	"strings"

	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/ignored"
)

// Query returns a parameter of the query, fallback if it is missing or empty, and
// records it as known: parameters that a handler does not read are named in the
// header Guidon-Ignored. The string is valid until the handler returns.
func (c *Call) Query(name string, fallback ...string) string {
	c.query.Read(name)
	return c.Ctx.Query(name, fallback...)
}

// HasQuery reports whether the query has a parameter, also an empty one, and
// records it as known.
func (c *Call) HasQuery(name string) bool {
	c.query.Read(name)
	return c.Context().QueryArgs().Has(name)
}

// nameIgnored adds the header with the parameters and fields that the handler did
// not read. The parameters that authenticate are known on every path, and so is
// format=json, the format of every answer.
func (c *Call) nameIgnored() {
	var names []string
	for key, value := range c.Context().QueryArgs().All() {
		name := string(key)
		switch {
		case c.query.Has(name), name == credential.PersonalField, name == "token", name == "format" && string(value) == "json":
		default:
			names = append(names, name)
		}
	}
	if c.fields == nil && len(c.Request().Body()) > 0 {
		c.fields, _ = Decode(c.Ctx, c.router.Limits()) // a body that no handler reads may be anything
	}
	if c.fields != nil {
		names = append(names, c.fields.Ignored()...)
	}
	if value := ignored.Value(names); value != "" {
		c.Set(ignored.Header, strings.Clone(value))
	}
}
