// Package flagapi serves requests about several flags: bulk reads and deletions,
// the flags that depend on a flag, its versions, and copies between the projects of
// an organization. The rules are those of core/flags, whose service does the work.
package flagapi

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Projects reads the projects of an organization.
type Projects interface {
	// Projects returns the projects of an organization that are not closed.
	Projects(ctx context.Context, organizationID string) ([]auth.Project, error)
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")
