package auth

import (
	"strings"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

// Known reports whether a project key or a personal key is valid by the snapshot,
// which holds the digests of all valid personal keys. It reads nothing from the
// database: the answer for a key that another process created within the refresh
// interval may be false.
func (a *authenticator) Known(key string) bool {
	key = strings.TrimSpace(key)
	m := a.snapshot.Load()
	if m == nil || len(key) > apikey.MaxPersonal {
		return false
	}
	if m.byKey[key] != nil {
		return true
	}
	_, ok := m.byHash[apikey.DigestOf(key).String()]
	return ok
}
