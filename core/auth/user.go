package auth

import (
	"net/mail"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// User is a person who works with the service, in the form other resources
// embed.
type User struct {
	ID              int64  `json:"id"`
	UUID            string `json:"uuid"`
	DistinctID      string `json:"distinct_id"`
	FirstName       string `json:"first_name"`
	Email           string `json:"email"`
	IsEmailVerified bool   `json:"is_email_verified"`
}

// Levels of a member in an organization.
const (
	LevelMember = 1
	LevelAdmin  = 8
	LevelOwner  = 15
)

// Organization is who owns projects and employs people. FlagsAccessLevel is
// what a member without a role may do with flags of others: CanView or CanEdit.
type Organization struct {
	ID               string
	Name             string
	FlagsAccessLevel int
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// OrganizationChange says what to change; nil leaves a field as it is.
type OrganizationChange struct {
	Name             *string
	FlagsAccessLevel *int
}

// Member is a user's place in an organization.
type Member struct {
	User      User
	Level     int
	JoinedAt  time.Time
	UpdatedAt time.Time
}

// NewUser is what a user is made of; Level 0 is LevelMember.
type NewUser struct {
	Email          string
	FirstName      string
	OrganizationID string
	Level          int
}

// UserChange says what to change; nil leaves a field as it is.
type UserChange struct {
	FirstName        *string
	Email            *string
	CurrentProjectID *int64
}

// checkEmail returns the address in the one form it is stored in.
func checkEmail(address string) (string, error) {
	address = strings.ToLower(strings.TrimSpace(address))
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || len(address) > 254 {
		return "", fault.Field("email", "invalid_input", "Enter a valid email address.")
	}
	return address, nil
}

func checkLevel(level int) error {
	switch level {
	case LevelMember, LevelAdmin, LevelOwner:
		return nil
	}
	return fault.Field("level", "invalid_choice", "The level must be 1 (member), 8 (admin) or 15 (owner).")
}
