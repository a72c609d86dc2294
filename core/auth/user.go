package auth

import (
	"net/mail"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// User is a user of the management interface, in the JSON form that other
// resources embed. Operator is the right to administer the server itself, apart
// from any organization; the JSON form does not show it.
type User struct {
	ID              int64  `json:"id"`
	UUID            string `json:"uuid"`
	DistinctID      string `json:"distinct_id"`
	FirstName       string `json:"first_name"`
	Email           string `json:"email"`
	IsEmailVerified bool   `json:"is_email_verified"`
	Operator        bool   `json:"-"`

	// Fields that clients expect and that are not kept here.
	LastName           string    `json:"last_name"`
	RoleAtOrganization *string   `json:"role_at_organization"`
	HedgehogConfig     *struct{} `json:"hedgehog_config"`
}

// Levels of a member in an organization.
const (
	LevelMember = 1
	LevelAdmin  = 8
	LevelOwner  = 15
)

// Organization owns projects and has members. FlagsAccessLevel is the access of a
// member without a role to flags of other members: CanView or CanEdit.
type Organization struct {
	ID               string
	Name             string
	FlagsAccessLevel int
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// OrganizationChange is a change of an organization; nil keeps a field.
type OrganizationChange struct {
	Name             *string
	FlagsAccessLevel *int
}

// Member is the membership of a user in an organization.
type Member struct {
	User      User
	Level     int
	JoinedAt  time.Time
	UpdatedAt time.Time
}

// NewUser describes a user to create; Level 0 is LevelMember.
type NewUser struct {
	Email          string
	FirstName      string
	OrganizationID string
	Level          int
	Operator       bool
}

// UserChange is a change of a user; nil keeps a field.
type UserChange struct {
	FirstName        *string
	Email            *string
	CurrentProjectID *int64
}

// CheckEmail returns the address in its stored form, or Invalid for the field email.
func CheckEmail(address string) (string, error) {
	address = strings.ToLower(strings.TrimSpace(address))
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || len(address) > 254 {
		return "", fault.Field("email", "invalid_input", "Enter a valid email address.")
	}
	return address, nil
}

// CheckLevel fails with Invalid for the field level unless it is one of the levels.
func CheckLevel(level int) error {
	switch level {
	case LevelMember, LevelAdmin, LevelOwner:
		return nil
	}
	return fault.Field("level", "invalid_choice", "The level must be 1 (member), 8 (admin) or 15 (owner).")
}
