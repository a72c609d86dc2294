package auth

import (
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Access to flags of other members, by a role or by default of an organization.
// The numbers are part of the API.
const (
	CanView = 21
	CanEdit = 37
)

// Role is a set of members of an organization with a level of access to flags.
// CreatedBy is nil if the user no longer exists.
type Role struct {
	ID               string       `json:"id"`
	OrganizationID   string       `json:"-"`
	Name             string       `json:"name"`
	FlagsAccessLevel int          `json:"feature_flags_access_level"`
	CreatedAt        time.Time    `json:"created_at"`
	CreatedBy        *User        `json:"created_by"`
	Members          []RoleMember `json:"members"`
}

// RoleMember is the membership of a user in a role.
type RoleMember struct {
	ID        string    `json:"id"`
	RoleID    string    `json:"role_id"`
	User      User      `json:"user"`
	JoinedAt  time.Time `json:"joined_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// NewRole describes a role to create. FlagsAccessLevel 0 is the organization's.
type NewRole struct {
	OrganizationID   string
	Name             string
	FlagsAccessLevel int
	CreatedBy        int64 // a user, 0 for none
}

// RoleChange is a change of a role; nil keeps a field.
type RoleChange struct {
	Name             *string
	FlagsAccessLevel *int
}

// Levels is the access of a user to flags, apart from the flag itself.
type Levels struct {
	Default int  // the organization's level for flags
	Admin   bool // the user manages the organization
	Roles   []RoleLevel
}

// RoleLevel is one role of the user.
type RoleLevel struct {
	ID    string
	Level int
}

// CanEdit reports whether the user may change a flag: as its creator, as admin of
// the organization, by the default of the organization, by a role that may change
// every flag, or by a role in access, the ids of the roles that have access to
// this flag.
func (l Levels) CanEdit(creator bool, access []string) bool {
	if creator || l.Admin || l.Default == CanEdit || l.highest() == CanEdit {
		return true
	}
	return slices.ContainsFunc(l.Roles, func(r RoleLevel) bool { return slices.Contains(access, r.ID) })
}

// CanGiveAccess reports whether the user may give roles access to a flag.
func (l Levels) CanGiveAccess(creator bool) bool {
	return creator || l.Admin || l.Default == CanEdit || l.highest() == CanEdit
}

// highest returns the highest level of the user's roles, the default without a
// role.
func (l Levels) highest() int {
	if len(l.Roles) == 0 {
		return l.Default
	}
	return slices.MaxFunc(l.Roles, func(a, b RoleLevel) int { return a.Level - b.Level }).Level
}

func checkAccessLevel(level int) error {
	if level == CanView || level == CanEdit {
		return nil
	}
	return fault.Field("feature_flags_access_level", "invalid_choice", "The level must be 21 (can view) or 37 (can edit).")
}

// RoleFlag is a feature flag that the members of a role may edit, as answers list
// it.
type RoleFlag struct {
	ID  int64  `json:"id"`
	Key string `json:"key"`
}
