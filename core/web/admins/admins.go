// Package admins restricts routes of an organization to its admins.
package admins

import (
	"strings"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// Require returns a handler that accepts admins and owners of the organization of the path,
// with a key for all projects. Others get 403 with message; a foreign organization gets 404.
func Require(message string, next func(*web.Call) error) func(*web.Call) error {
	return func(c *web.Call) error {
		id := c.Params("organization_id")
		if id != auth.Current && !strings.EqualFold(id, c.Principal.OrganizationID) {
			return fault.New(fault.NotFound, "not_found", "Not found.")
		}
		if !c.Principal.IsAdmin() || c.Principal.IsRestricted() {
			return fault.New(fault.Forbidden, "permission_denied", message)
		}
		return next(c)
	}
}
