package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Prefixes of keys.
const (
	ProjectPrefix  = "phc_"
	PersonalPrefix = "phx_"
)

const (
	maxProjectKey  = 64
	maxPersonalKey = 256
)

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
// is valid.
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
	RevokedAt      time.Time
}

// NewPersonalKey describes a personal key to create. An empty OrganizationID is
// the one the user works in; no ProjectIDs means every project of it. By is the
// principal of the request: the new key may do nothing that By may not do.
type NewPersonalKey struct {
	UserID         int64
	OrganizationID string
	Label          string
	Scopes         []string
	ProjectIDs     []int64
	By             *Principal
}

// PersonalKeyChange is a change of a personal key; nil keeps a field. By is the
// principal of the request, which must cover the key before and after the change.
type PersonalKeyChange struct {
	Label      *string
	Scopes     []string
	ProjectIDs []int64 // empty and not nil: every project
	By         *Principal
}

// Shape is the defect that CheckKey finds in a project key, empty for none.
type Shape string

// The shapes of invalid project keys. A value that is not a string is rejected
// by its decoder.
const (
	ShapeEmpty    Shape = "empty"
	ShapeTooLong  Shape = "too_long"
	ShapeNotASCII Shape = "not_ascii"
	ShapePersonal Shape = "personal_api_key"
	ShapeNullByte Shape = "null_byte"
)

// CheckKey returns the key without surrounding white space, which clients read
// from files, and the defect that makes it invalid without a lookup. It does not
// allocate.
func CheckKey(key string) (string, Shape) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return key, ShapeEmpty
	case len(key) > maxProjectKey:
		return key, ShapeTooLong
	case !isASCII(key):
		return key, ShapeNotASCII
	case strings.HasPrefix(key, PersonalPrefix):
		return key, ShapePersonal
	case strings.IndexByte(key, 0) >= 0:
		return key, ShapeNullByte
	}
	return key, ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// ownKey matches project keys that may be imported.
var ownKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

func checkOwnKey(key string) error {
	if !ownKey.MatchString(key) || strings.HasPrefix(key, PersonalPrefix) {
		return fault.Field("key", "invalid_input", "A project key is 8 to 64 letters, digits, - and _ and does not begin with phx_.")
	}
	return nil
}

// freshKey returns the prefix and 256 random bits as 43 characters that need no
// escape in a URL.
func freshKey(prefix string) string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never returns an error
	return prefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// digest is the stored form of a personal key. SHA-256 without salt or stretching
// is enough: those slow down the guessing of chosen secrets, and 256 random bits
// cannot be guessed at any speed; a slow hash would only make every request slow.
// A lookup by digest also leaks nothing through its timing.
type digest [sha256.Size]byte

func digestOf(key string) digest { return sha256.Sum256([]byte(key)) }

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// mask returns the part of a personal key that may be shown.
func mask(key string) string { return key[:len(PersonalPrefix)] + "..." + key[len(key)-4:] }
