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

// ProjectKey is what client libraries send to say which project they mean. It
// is public by nature. RevokedAt is zero while the key is good.
type ProjectKey struct {
	ID        int64
	ProjectID int64
	Key       string
	Label     string
	CreatedBy int64 // a user, 0 when nobody
	CreatedAt time.Time
	RevokedAt time.Time
}

// NewProjectKey is what a project key is made of. An empty Key is a fresh one;
// a given one lets clients that already carry a key keep it.
type NewProjectKey struct {
	ProjectID int64
	Label     string
	Key       string
	CreatedBy int64
}

// PersonalKey is a key of a user for the management interface, without the
// secret, which is known only when it is made. LastUsedAt is zero for a key
// that was never used and up to a minute behind; RevokedAt is zero while the
// key is good.
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

// NewPersonalKey is what a personal key is made of. An empty OrganizationID is
// the one the user works in; no ProjectIDs is every project of it. By is who
// asks with a key of their own: the new one may do nothing that theirs may not.
type NewPersonalKey struct {
	UserID         int64
	OrganizationID string
	Label          string
	Scopes         []string
	ProjectIDs     []int64
	By             *Principal
}

// PersonalKeyChange says what to change; nil leaves a field as it is. By is
// who asks with a key of their own, which has to cover the changed key before
// and after.
type PersonalKeyChange struct {
	Label      *string
	Scopes     []string
	ProjectIDs []int64 // empty and not nil: every project
	By         *Principal
}

// Shape is what CheckKey sees wrong with a project key; empty for nothing.
type Shape string

// The shapes that no project key has. A value that is not even text is for
// whoever decodes it to refuse.
const (
	ShapeEmpty    Shape = "empty"
	ShapeTooLong  Shape = "too_long"
	ShapeNotASCII Shape = "not_ascii"
	ShapePersonal Shape = "personal_api_key"
	ShapeNullByte Shape = "null_byte"
)

// CheckKey returns the key without surrounding white space, which clients send
// along from files, and what shows, without looking it up, that it cannot be
// the key of a project. It allocates nothing.
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

// ownKey is a project key that may be brought along.
var ownKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

func checkOwnKey(key string) error {
	if !ownKey.MatchString(key) || strings.HasPrefix(key, PersonalPrefix) {
		return fault.Field("key", "invalid_input", "A project key is 8 to 64 letters, digits, - and _ and does not begin with phx_.")
	}
	return nil
}

// freshKey is the prefix and 256 random bits as 43 characters that need no
// escaping in a URL.
func freshKey(prefix string) string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails: it ends the process first
	return prefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// digest is what is stored of a personal key. SHA-256 without salt or
// stretching is right for it: those slow down the guessing of secrets that
// people chose, and 256 random bits cannot be guessed at any speed; a slow
// hash would only make every request slow. Looking a key up by its digest also
// tells a stranger nothing by the time it takes.
type digest [sha256.Size]byte

func digestOf(key string) digest { return sha256.Sum256([]byte(key)) }

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// mask is the part of a personal key that people may see.
func mask(key string) string { return key[:len(PersonalPrefix)] + "..." + key[len(key)-4:] }
