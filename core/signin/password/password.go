// Package password hashes passwords with argon2id and checks them.
//
// The parameters are those that OWASP's password storage cheat sheet names first: 19 MiB
// of memory, two passes, one thread, a salt of 16 bytes and a result of 32. A hash has its
// parameters, in the PHC string format, so that they can be raised: IsOld reports a hash
// with others, which the caller replaces when it next knows the password.
//
// A Hasher computes MaxRunning hashes at a time, of 19 MiB each; the memory of past ones stays
// until Go collects it. At most MaxWaiting callers wait; the next one fails at once with
// Unavailable.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/guidonhq/guidon/core/fault"
)

// Bounds of a Hasher.
const (
	MaxRunning = 2
	MaxWaiting = 64
)

// Parameters of argon2id.
const (
	memoryKiB = 19 << 10
	passes    = 2
	threads   = 1
	saltBytes = 16
	hashBytes = 32
)

// Lengths of a password, in characters and in bytes.
const (
	MinLength = 10
	maxBytes  = 1024
)

// Hasher hashes passwords. Its methods are safe for concurrent use.
type Hasher struct {
	running chan struct{}
	waiting chan struct{}
	absent  string // a hash of no password
}

// New returns a Hasher.
func New() *Hasher {
	h := &Hasher{running: make(chan struct{}, MaxRunning), waiting: make(chan struct{}, MaxRunning+MaxWaiting)}
	h.absent = encode(make([]byte, saltBytes), make([]byte, hashBytes))
	return h
}

var errBusy = fault.New(fault.Unavailable, "busy", "Too many people sign in at the moment: try again.").After(time.Second)

// begin waits for a place among the running computations.
func (h *Hasher) begin(ctx context.Context) (end func(), err error) {
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, errBusy
	}
	select {
	case h.running <- struct{}{}:
		return func() { <-h.running; <-h.waiting }, nil
	case <-ctx.Done():
		<-h.waiting
		return nil, errBusy.Because(ctx.Err())
	}
}

// Hash returns the hash of a password with a new salt.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	end, err := h.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never returns an error
	return encode(salt, argon2.IDKey([]byte(password), salt, passes, memoryKiB, threads, hashBytes)), nil
}

// Matches reports whether hash is that of password. An empty hash matches nothing and takes
// as long as any other one.
func (h *Hasher) Matches(ctx context.Context, hash, password string) (bool, error) {
	end, err := h.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	known := hash != ""
	if !known {
		hash = h.absent
	}
	p, err := decode(hash)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.threads, uint32(len(p.hash)))
	return subtle.ConstantTimeCompare(got, p.hash) == 1 && known, nil
}

// IsOld reports whether a hash has other parameters than new ones.
func IsOld(hash string) bool { return !strings.HasPrefix(hash, header) }

var header = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, memoryKiB, passes, threads)

func encode(salt, hash []byte) string {
	text := base64.RawStdEncoding.EncodeToString
	return header + text(salt) + "$" + text(hash)
}

type parts struct {
	memory, passes uint32
	threads        uint8
	salt, hash     []byte
}

func decode(text string) (p parts, err error) {
	var version int
	f := strings.Split(text, "$")
	if len(f) != 6 || f[1] != "argon2id" {
		return p, fmt.Errorf("the hash of a password is not argon2id")
	}
	if _, err := fmt.Sscanf(f[2]+" "+f[3], "v=%d m=%d,t=%d,p=%d", &version, &p.memory, &p.passes, &p.threads); err != nil {
		return p, fmt.Errorf("read the parameters of a password hash: %w", err)
	}
	if p.salt, err = base64.RawStdEncoding.DecodeString(f[4]); err == nil {
		p.hash, err = base64.RawStdEncoding.DecodeString(f[5])
	}
	if err != nil || version != argon2.Version || p.memory > 1<<20 || p.passes < 1 || p.threads < 1 || len(p.hash) < 16 {
		return p, fmt.Errorf("the hash of a password is damaged")
	}
	return p, nil
}

// Check fails with Invalid for a password that is too short, too long, or known to
// everyone, such as the address of its user.
func Check(password, email string) error {
	const attr = "password"
	local, _, _ := strings.Cut(email, "@")
	switch lower := strings.ToLower(password); {
	case !utf8.ValidString(password):
		return fault.Field(attr, "invalid_input", "The password must be text.")
	case utf8.RuneCountInString(password) < MinLength:
		return fault.Fieldf(attr, "too_short", "The password must have at least %d characters.", MinLength)
	case len(password) > maxBytes:
		return fault.Fieldf(attr, "too_long", "The password must have at most %d bytes.", maxBytes)
	case lower == strings.ToLower(email), len(local) > 3 && strings.Contains(lower, local) && len(lower) < len(local)+4, isCommon(lower):
		return fault.Field(attr, "too_common", "The password is easy to guess: choose another one.")
	}
	return nil
}

// isCommon reports whether a password in lower case is a common one, repeats one character
// or counts.
func isCommon(lower string) bool {
	if strings.Trim(lower, lower[:1]) == "" || strings.Contains("01234567890123456789", lower) || strings.Contains("abcdefghijklmnopqrstuvwxyz", lower) {
		return true
	}
	switch strings.TrimRight(lower, "0123456789!.?") {
	case "password", "passwordpassword", "qwertyuiop", "qwertyuiopasdfghjkl", "letmein", "welcome", "changeme", "administrator", "admin", "guidon", "iloveyou", "q1w2e3r4t5y6", "1q2w3e4r5t", "1qaz2wsx3edc":
		return true
	}
	return false
}
