// Package accounts lets people manage, over HTTP, who may do what: themselves,
// their organization and its members, roles and defaults, projects and the
// keys of projects, and their own personal keys. What is behind it is
// core/auth, which knows no HTTP; this room adds the paths, the JSON, and the
// question whether the one who asks may do that.
//
// Three things have to agree before something changes: the key has the scope
// (the gate asks for it), the thing belongs to the organization of the key
// (anything else is not found), and the user has the level, member, admin or
// owner, that the change takes. Nobody can give more than they have: a member
// no level above their own, a key no key that may do more than itself.
package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Flags knows which flags roles were given.
type Flags interface {
	// FlagsOfRoles returns, by the id of the role, the flags of the projects
	// that each role was given, without those that are deleted.
	FlagsOfRoles(ctx context.Context, projectIDs []int64, roleIDs []string) (map[string][]Flag, error)
}

// Flag is how a role names a flag that it was given.
type Flag struct {
	ID  int64  `json:"id"`
	Key string `json:"key"`
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")

// needAdmin fails unless the user manages their organization.
func needAdmin(who *auth.Principal) error {
	if who.IsAdmin() {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "Only admins and owners of the organization may do this.")
}

// needRank fails when the member is above who, or would be at level.
func needRank(who *auth.Principal, member auth.Member, level int) error {
	if max(member.Level, level) <= who.OrgLevel {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "You can only manage members up to your own level.")
}

// needRemoval fails unless who may take the member out: everybody may leave,
// admins may take out those who are not above them.
func needRemoval(who *auth.Principal, member auth.Member) error {
	if member.User.ID == who.User.ID {
		return nil
	}
	if err := needAdmin(who); err != nil {
		return err
	}
	return needRank(who, member, member.Level)
}

// visible are the projects that the key may touch.
func visible(who *auth.Principal, projects []auth.Project) []auth.Project {
	return slices.DeleteFunc(projects, func(p auth.Project) bool { return !who.CanAccessProject(p.ID) })
}

// stamp prints a time to the microsecond, and null for none.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	t := time.Time(s)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000000Z07:00"`)), nil
}

// inText is v as JSON in a text, which is how a role shows its lists.
func inText(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), err
}
