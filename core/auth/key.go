package auth

import "time"

// ProjectKey is a key that client libraries send to name their project. It is
// public. RevokedAt is zero while the key is valid.
type ProjectKey struct {
	ID        int64
	ProjectID int64
	Key       string
	Label     string
	CreatedBy int64 // a user, 0 for none
	CreatedAt time.Time
	RevokedAt time.Time
}

// NewProjectKey describes a project key to create. An empty Key is generated; a
// given one lets clients keep the key they already have.
type NewProjectKey struct {
	ProjectID int64
	Label     string
	Key       string
	CreatedBy int64
}

// PersonalKey is a key of a user for the management interface, without the
// secret, which is known only at its creation. LastUsedAt is zero for a key
// that was never used, and up to a minute old; RevokedAt is zero while the key
// is not revoked, and ExpiresAt for a key without an end.
type PersonalKey struct {
	ID             int64
	UserID         int64
	OrganizationID string
	Label          string
	Mask           string
	Scopes         []string
	ProjectIDs     []int64
	CreatedAt      time.Time
	LastUsedAt     time.Time
	ExpiresAt      time.Time
	RevokedAt      time.Time
}

// NewPersonalKey describes a personal key to create. An empty OrganizationID is
// the one the user works in; no ProjectIDs means every project of it. By is the
// principal of the request: the new key may do nothing that By may not do, and
// ends no later. A zero ExpiresAt is the end of By, or none. Secret is the text of the
// key, for tests that need a known one; empty makes a random one.
type NewPersonalKey struct {
	UserID         int64
	OrganizationID string
	Label          string
	Scopes         []string
	ProjectIDs     []int64
	ExpiresAt      time.Time
	Secret         string
	By             *Principal
}

// PersonalKeyChange is a change of a personal key; nil keeps a field. By is the
// principal of the request, which must cover the key before and after the change.
type PersonalKeyChange struct {
	Label      *string
	Scopes     []string
	ProjectIDs []int64    // empty and not nil: every project
	ExpiresAt  *time.Time // zero: no end
	By         *Principal
}
