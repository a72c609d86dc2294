// Package invitation lets admins of an organization invite people who have no account.
//
// An invitation has a token, which is shown once and stored as a hash. Its holder
// creates the user of the invited address, with a personal key, once and within three
// days. With an SMTP server the invited person gets the link by e-mail; without one, or if
// the e-mail fails, the admin hands it over.
//
// Rights cannot be raised. The level of the new user is at most that of the inviter, and
// the personal key has the scopes of the inviter's key. An invitation ends with the
// rights of its inviter: it is refused if the inviter is no admin of that level any more.
// An address that has a user, revoked or not, cannot be invited.
package invitation

import (
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Validity is the time in which an invitation can be accepted.
const Validity = 3 * 24 * time.Hour

// maxOpen bounds the open invitations of an organization.
const maxOpen = 1000

// tokenPrefix begins the token of an invitation.
const tokenPrefix = "phi_"

// Invitation is an invitation that was not accepted.
type Invitation struct {
	ID             string
	OrganizationID string
	Email          string
	FirstName      string
	Level          int
	Scopes         []string
	CreatedBy      int64 // a user, 0 for the command line
	CreatedAt      time.Time
	ExpiresAt      time.Time
	EmailState     string // EmailOff, EmailQueued, EmailSent or EmailFailed
}

// Expired reports whether the invitation cannot be accepted any more.
func (i Invitation) Expired(now time.Time) bool { return !now.Before(i.ExpiresAt) }

// New describes an invitation to make; Level 0 is auth.LevelMember.
type New struct {
	Email     string
	FirstName string
	Level     int
}

// Accepted has the accounts that an invitation made. Key is a secret.
type Accepted struct {
	User           auth.User
	OrganizationID string
	Level          int
	Key            string
}

var (
	errTaken    = fault.Field("target_email", "unique", "There is already a user with this email address.")
	errLevel    = fault.New(fault.Forbidden, "permission_denied", "You can only invite members up to your own level.")
	errTooMany  = fault.New(fault.Conflict, "too_many_invites", "The organization has too many open invitations: delete some.")
	errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")
	errInvalid  = fault.Field("token", "invalid_invite", "The invitation does not exist, was used or deleted, or has another token.")
	errExpired  = fault.Field("token", "expired_invite", "The invitation has expired: ask for a new one.")
	errLimited  = fault.Field("token", "limited_invite", "The key of the inviter may not do everything: accept the invitation with guidon login --invite.")
	errInviter  = fault.Field("token", "invalid_invite", "The inviter may not invite to this level any more: ask for a new invitation.")
)
