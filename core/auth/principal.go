package auth

import (
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/fault"
)

// Principal is the holder of a personal key: a user in one organization. It is
// shared between requests and must not be changed.
type Principal struct {
	User             User
	OrganizationID   string
	OrgLevel         int      // LevelMember, LevelAdmin or LevelOwner
	Scopes           []string // of the key; checked by HasScope
	ProjectIDs       []int64  // the projects the key is restricted to; empty: all of the organization
	CurrentProjectID int64    // the project the user works in, 0 for none
	KeyID            int64
	KeyExpiresAt     time.Time // zero: never
	// FromSnapshot marks a key that was not checked with the database, which is
	// away: it may only read what the server has in memory.
	FromSnapshot bool
	// SecretKey marks a secret key of the project CurrentProjectID: it has no user
	// and no rights beyond its scopes. KeyID is negative then.
	SecretKey bool
	SessionID int64 // of the session of a browser, with all scopes and KeyID 0; or 0
}

// SecretPrincipal returns the principal that stands for the project of a secret key.
func SecretPrincipal(k secretkey.Holder) *Principal {
	return &Principal{
		OrganizationID: k.OrganizationID, Scopes: k.Scopes, ProjectIDs: []int64{k.ProjectID}, CurrentProjectID: k.ProjectID,
		KeyID: -k.ID, KeyExpiresAt: k.ExpiresAt, SecretKey: true,
	}
}

// HasScope reports whether the key has scope, an object and an action as in
// "feature_flag:read". Write includes read, "feature_flag:*" is both, "*" is
// everything.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.ContainsFunc(p.Scopes, func(held string) bool { return apikey.Covers(held, scope) })
}

// CheckExpiry fails with Unauthenticated CodeExpired, or CodeSecretExpired for a
// secret key, from the moment at which the key expires.
func (p *Principal) CheckExpiry(now time.Time) error {
	if p.KeyExpiresAt.IsZero() || now.Before(p.KeyExpiresAt) {
		return nil
	}
	kind, code := "personal API key", CodeExpired
	if p.SecretKey {
		kind, code = "secret key", CodeSecretExpired
	}
	return fault.Newf(fault.Unauthenticated, code, "The %s expired at %s.", kind, p.KeyExpiresAt.Format(time.RFC3339))
}

// RequireScope fails with Forbidden unless the key has scope; an empty scope
// needs no more than a key.
func (p *Principal) RequireScope(scope string) error {
	if scope != "" && !p.HasScope(scope) {
		return fault.Newf(fault.Forbidden, "permission_denied", "API key missing required scope '%s'", scope)
	}
	return nil
}

// IsAdmin reports whether the user manages the organization.
func (p *Principal) IsAdmin() bool { return p != nil && p.OrgLevel >= LevelAdmin }

// IsOperator reports whether the user administers the server itself.
func (p *Principal) IsOperator() bool { return p != nil && p.User.Operator }

// IsRestricted reports whether the key is restricted to some projects. Such a key
// changes nothing of the organization or the server.
func (p *Principal) IsRestricted() bool { return p != nil && len(p.ProjectIDs) > 0 }

// CanAccessProject reports whether the key is not restricted to other projects. It
// does not check the organization of the project.
func (p *Principal) CanAccessProject(projectID int64) bool {
	return len(p.ProjectIDs) == 0 || slices.Contains(p.ProjectIDs, projectID)
}

// Covers reports whether the key may do all that a key of the same user with these
// scopes, restricted to these projects (none: every project), may do. A key
// creates, changes and revokes only keys that it covers.
func (p *Principal) Covers(scopes []string, projectIDs []int64) bool {
	for _, s := range scopes {
		// Write includes read, so it stands for all actions.
		if object, all := strings.CutSuffix(s, ":*"); all {
			s = object + ":write"
		}
		if !p.HasScope(s) {
			return false
		}
	}
	if len(projectIDs) == 0 {
		return len(p.ProjectIDs) == 0
	}
	return !slices.ContainsFunc(projectIDs, func(id int64) bool { return !p.CanAccessProject(id) })
}
