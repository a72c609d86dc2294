// Package signin signs people in to sessions: by a link that works once, by password, and by
// an invitation. Package oidc below it adds OpenID Connect.
//
// Guessing is bounded. Each attempt counts for the address of the client, and for the account
// in general and from that address, before any work is done; past a limit it fails with
// Throttled. The limits are those of one node. An attempt for an unknown address takes as
// long as one with a wrong password, and has the same answer. Tokens have 256 random bits and
// are stored as SHA-256; a token is used in the transaction that makes the session, so of
// concurrent uses one succeeds.
//
// Rights cannot be raised. A session has the rights of its user, which are more than those of
// a personal key with few scopes. So a personal key sets no password and makes no link; a
// link for another user is made on the machine of the server only; and an invitation that was
// made with such a key makes no session.
//
// A new password ends the other sessions of the user and makes open links of the user useless.
package signin

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin/oidc"
	"github.com/guidonhq/guidon/core/web/limit"
)

// Config holds the settings of signing in.
type Config struct {
	sessions.Config `koanf:",squash"`
	// Password allows signing in with a password.
	Password bool `koanf:"password"`
	// LinkLifetime is the time in which a link can be used.
	LinkLifetime time.Duration `koanf:"link_lifetime"`
	// AddressRate limits the attempts of one client address (IPv6: of a /64 network).
	AddressRate limit.Rate `koanf:"address_rate"`
	// AccountRate limits the attempts for one account from one client address. From all
	// addresses together they may be ten times as many.
	AccountRate limit.Rate `koanf:"account_rate"`
	// OIDC signs in with a provider of OpenID Connect.
	OIDC oidc.Config `koanf:"oidc"`
}

// DefaultConfig allows passwords and has no provider.
func DefaultConfig() Config {
	return Config{
		Config:       sessions.DefaultConfig(),
		Password:     true,
		LinkLifetime: 30 * time.Minute,
		AddressRate:  limit.Rate{PerSecond: 0.5, Burst: 30},
		AccountRate:  limit.Rate{PerSecond: 0.1, Burst: 10},
		OIDC:         oidc.DefaultConfig(),
	}
}

// Validate returns an error for an invalid setting.
func (c Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	if c.LinkLifetime < time.Minute || c.LinkLifetime > 24*time.Hour {
		return fmt.Errorf("link_lifetime must be between 1m and 24h, got %s", c.LinkLifetime)
	}
	if err := c.AddressRate.Validate("address_rate"); err != nil {
		return err
	}
	if err := c.AccountRate.Validate("account_rate"); err != nil {
		return err
	}
	return c.OIDC.Validate()
}

// Kinds of links.
const (
	kindLink  = "link"
	kindReset = "reset"
)

// linkPrefix begins the token of a link.
const linkPrefix = "gdl_"

var (
	errCredentials = fault.New(fault.Unauthenticated, "invalid_credentials", "The e-mail address or the password is wrong.")
	errLink        = fault.New(fault.Unauthenticated, "invalid_link", "The link was used, has expired or does not exist: ask for another one.")
	errNoPassword  = fault.New(fault.Conflict, "password_off", "Signing in with a password is switched off.")
	errCurrent     = fault.Field("current_password", "invalid_password", "The current password is wrong.")
	errSession     = fault.New(fault.Conflict, "session_required", "This needs a session of a browser, not a personal API key.")
)
