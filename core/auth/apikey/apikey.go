// Package apikey holds the text of keys and the language of their scopes.
//
// Project keys (phc_) are public names of a project; personal keys (phx_) are
// secrets of a user, secret keys (phs_) of a project. The package generates them,
// checks the shape of a received key before a lookup, derives the stored digest of
// a secret, and removes secrets from JSON that is stored. It is pure: core/auth
// stores keys and finds their holders.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Prefixes of keys.
const (
	ProjectPrefix  = "phc_"
	PersonalPrefix = "phx_"
	SecretPrefix   = "phs_"
)

// Maximum lengths of keys in bytes.
const (
	maxProjectKey = 64
	MaxPersonal   = 256
)

// New returns the prefix and 256 random bits as 43 characters that need no
// escape in a URL.
func New(prefix string) string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never returns an error
	return prefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// IsSecret reports whether a key is a secret key of a project by its prefix.
func IsSecret(key string) bool { return strings.HasPrefix(key, SecretPrefix) }

// Digest is the stored form of a personal key or a secret key. SHA-256 without salt or stretching
// is enough: those slow down the guessing of chosen secrets, and 256 random bits
// cannot be guessed at any speed; a slow hash would only make every request slow.
// A lookup by digest also leaks nothing through its timing.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a key.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Mask returns the part of a personal key or a secret key that may be shown.
func Mask(key string) string { return key[:len(PersonalPrefix)] + "..." + key[len(key)-4:] }
