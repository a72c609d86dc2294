// Package accounts serves accounts over HTTP: the user of the key, the
// organization with its members, roles and defaults, projects and their keys, and
// the user's personal keys. core/auth stores and changes them; this package adds
// paths, JSON and the check of the caller's rights.
//
// A change needs three things: the key has the scope (core/web checks it), the
// object belongs to the organization of the key (others are not found), and the
// user has the level, member, admin or owner, that the change requires. Rights
// cannot be raised: a member sets no level above the own one, and a key creates no
// key that may do more than itself.
package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Flags returns the flags that roles have access to.
type Flags interface {
	// FlagsOfRoles returns, by role id, the flags of the projects that each role has
	// access to, without deleted flags.
	FlagsOfRoles(ctx context.Context, projectIDs []int64, roleIDs []string) (map[string][]auth.RoleFlag, error)
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// requireAdmin fails unless the user is an admin of the organization.
func requireAdmin(caller *auth.Principal) error {
	if caller.IsAdmin() {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "Only admins and owners of the organization may do this.")
}

// requireRank fails if the level of the member, or the new level, is above that of
// the caller.
func requireRank(caller *auth.Principal, member auth.Member, level int) error {
	if max(member.Level, level) <= caller.OrgLevel {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "You can only manage members up to your own level.")
}

// requireRemoval fails unless the caller may remove the member: members may leave,
// admins may remove members up to their own level.
func requireRemoval(caller *auth.Principal, member auth.Member) error {
	if member.User.ID == caller.User.ID {
		return nil
	}
	if err := requireAdmin(caller); err != nil {
		return err
	}
	return requireRank(caller, member, member.Level)
}

// visible returns the projects that the key may access.
func visible(caller *auth.Principal, projects []auth.Project) []auth.Project {
	return slices.DeleteFunc(projects, func(p auth.Project) bool { return !caller.CanAccessProject(p.ID) })
}

// inText returns v as JSON inside a string, the form of the lists of a role.
func inText(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), err
}
