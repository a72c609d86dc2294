package auth

import (
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// What a role, or an organization by default, lets people do with the flags
// that others made. The numbers are part of the interface.
const (
	CanView = 21
	CanEdit = 37
)

// Role is a set of people of an organization and what they may do with flags.
// CreatedBy is nil when the user is gone.
type Role struct {
	ID               string       `json:"id"`
	OrganizationID   string       `json:"-"`
	Name             string       `json:"name"`
	FlagsAccessLevel int          `json:"feature_flags_access_level"`
	CreatedAt        time.Time    `json:"created_at"`
	CreatedBy        *User        `json:"created_by"`
	Members          []RoleMember `json:"members"`
}

// RoleMember is a user's place in a role.
type RoleMember struct {
	ID        string    `json:"id"`
	RoleID    string    `json:"role_id"`
	User      User      `json:"user"`
	JoinedAt  time.Time `json:"joined_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// NewRole is what a role is made of. FlagsAccessLevel 0 is the organization's.
type NewRole struct {
	OrganizationID   string
	Name             string
	FlagsAccessLevel int
	CreatedBy        int64 // a user, 0 when nobody
}

// RoleChange says what to change; nil leaves a field as it is.
type RoleChange struct {
	Name             *string
	FlagsAccessLevel *int
}

// Levels is all that decides what a user may do with a flag, apart from the
// flag itself.
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

// CanEdit reports whether the user may change a flag: because they made it or
// manage the organization, because everybody may, because a role of theirs may
// change every flag, or because one of their roles is among access, the ids of
// the roles that were given this flag.
func (l Levels) CanEdit(creator bool, access []string) bool {
	if creator || l.Admin || l.Default == CanEdit || l.highest() == CanEdit {
		return true
	}
	return slices.ContainsFunc(l.Roles, func(r RoleLevel) bool { return slices.Contains(access, r.ID) })
}

// CanGiveAccess reports whether the user may say which roles may change a flag.
func (l Levels) CanGiveAccess(creator bool) bool {
	return creator || l.Admin || l.Default == CanEdit || l.highest() == CanEdit
}

// highest is the most that a role of the user allows; the default without one.
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
