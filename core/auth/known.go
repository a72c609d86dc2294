package auth

import (
	"strings"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

// Known reports whether a project key or a personal key is valid by what is in
// memory. It reads nothing from the database, so the answer for a valid key that
// was not used lately may be false.
func (a *authenticator) Known(key string) bool {
	key = strings.TrimSpace(key)
	if m := a.snapshot.Load(); m != nil && m.byKey[key] != nil {
		return true
	}
	if len(key) > apikey.MaxPersonal {
		return false
	}
	_, ok := a.principals.get(apikey.DigestOf(key))
	return ok
}
