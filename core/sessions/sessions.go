// Package sessions keeps the sessions of browsers that have signed in.
//
// A session has a token of 256 random bits, which the browser keeps in a cookie; the
// database has its SHA-256. Each sign-in makes a new session. A session ends with
// Config.Idle without a request, with Config.Lifetime after the sign-in, when it is revoked,
// and when its user is revoked or in no organization any more.
//
// A request finds its session in memory. Nodes read a session again after auth.PrincipalTTL,
// and at once when the version of the accounts in their memory changes. A revocation
// increments that version in its transaction, so it is effective on the node that made it
// when it returns, and on every other node within auth.RefreshInterval, or when a
// notification arrives; without the version it would be within auth.PrincipalTTL. While the
// database is away, sessions in memory are valid until auth.PrincipalTTL, others are not.
//
// The time of the last request is kept in memory and saved every minute, so a session may
// look idle for a minute longer than it is.
package sessions

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// TokenPrefix begins the token of a session.
const TokenPrefix = "gds_"

// Ways of signing in.
const (
	ByPassword   = "password"
	ByLink       = "link"
	ByReset      = "reset"
	ByInvitation = "invitation"
	ByOIDC       = "oidc"
)

// Config holds the lifetimes of sessions.
type Config struct {
	// Idle is the time without a request after which a session ends.
	Idle time.Duration `koanf:"session_idle"`
	// Lifetime is the time after the sign-in at which a session ends.
	Lifetime time.Duration `koanf:"session_lifetime"`
}

// DefaultConfig ends sessions after a week without use, and after thirty days.
func DefaultConfig() Config {
	return Config{Idle: 7 * 24 * time.Hour, Lifetime: 30 * 24 * time.Hour}
}

// minIdle is the shortest Idle: the last request is known to a minute.
const minIdle = 5 * time.Minute

// Validate returns an error for an invalid setting.
func (c Config) Validate() error {
	switch {
	case c.Idle < minIdle:
		return fmt.Errorf("session_idle must be at least %s, got %s", minIdle, c.Idle)
	case c.Lifetime < c.Idle:
		return fmt.Errorf("session_lifetime (%s) must not be shorter than session_idle (%s)", c.Lifetime, c.Idle)
	}
	return nil
}

// Session is a session that was not revoked. LastSeenAt may be a minute old.
type Session struct {
	ID             int64
	UserID         int64
	OrganizationID string // "": the user has chosen none
	Method         string
	UserAgent      string // at the sign-in
	Client         string // address at the sign-in
	CreatedAt      time.Time
	LastSeenAt     time.Time
	ExpiresAt      time.Time
}

// Origin is the method and the client of a sign-in.
type Origin struct {
	Method    string
	UserAgent string
	Client    string
}

// codeInvalid is the code of the error for a token without a session.
const codeInvalid = "session_invalid"

var (
	errInvalid  = fault.New(fault.Unauthenticated, codeInvalid, "The session has ended: sign in again.")
	errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")
)

// EndedBefore reports whether the session has ended at a time.
func (s Session) EndedBefore(now time.Time, idle time.Duration) bool {
	return !now.Before(s.ExpiresAt) || now.Sub(s.LastSeenAt) > idle
}

// Holder is the user of a session with the organization that it works in.
type Holder struct {
	Session   Session
	Principal *auth.Principal
}
