// Package sealed encrypts the payloads of flags.
//
// A flag with encrypted payloads stores them as texts that only a Keyring opens:
// AES-256-GCM under a key of the server, bound to the project. The texts stay valid
// payloads, so everything that stores or copies filters (the database, versions,
// the activity log, snapshots) holds ciphertext and needs no rule of its own.
// Redact replaces them in what the server shows.
//
// A text names its key. A Keyring has one key or more: the first one seals, all of
// them open, so keys are rotated by putting a new one in front. Package history
// encrypts what is stored with the new one; then the old one can be removed.
package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Redacted is the payload that stands for an encrypted one: a JSON text. A request
// that sends it keeps the stored payload.
const Redacted = `"********* (encrypted)"`

// prefix begins an encrypted payload, inside of the quotes of its JSON text.
const prefix = "guidon:sealed:1:"

// KeyBytes is the length of a key.
const KeyBytes = 32

// ErrPayload means that a payload cannot be decrypted.
var ErrPayload = errors.New("the encrypted payload cannot be decrypted")

// ErrUnknownKey is the ErrPayload of a payload that was sealed with a key that the
// server does not have.
var ErrUnknownKey = fmt.Errorf("%w: it was encrypted with a key that this server does not have", ErrPayload)

type key struct {
	id   string
	aead cipher.AEAD
}

// Keyring seals and opens payloads. It is safe for concurrent use.
type Keyring struct{ keys []key }

// NewKeyring returns a keyring of keys with KeyBytes bytes; the first one seals.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key for encrypted payloads")
	}
	r := &Keyring{}
	for _, k := range keys {
		if len(k) != KeyBytes {
			return nil, fmt.Errorf("a key for encrypted payloads has %d bytes, need %d", len(k), KeyBytes)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("key for encrypted payloads: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("key for encrypted payloads: %w", err)
		}
		sum := sha256.Sum256(append([]byte("guidon key id "), k...))
		r.keys = append(r.keys, key{hex.EncodeToString(sum[:4]), aead})
	}
	return r, nil
}

// ParseKeys reads keys of 32 bytes in base64, separated by commas or white space.
func ParseKeys(text string) ([][]byte, error) {
	var out [][]byte
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t' }) {
		raw, err := base64.StdEncoding.DecodeString(word)
		if err != nil || len(raw) != KeyBytes {
			return nil, fmt.Errorf("key %d for encrypted payloads is not %d bytes in base64, as openssl rand -base64 %d prints", len(out)+1, KeyBytes, KeyBytes)
		}
		out = append(out, raw)
	}
	return out, nil
}

// Seal returns a payload that holds text encrypted for the project.
func (r *Keyring) Seal(projectID int64, text string) string {
	k := r.keys[0]
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never returns an error
	box := k.aead.Seal(nonce, nonce, []byte(text), boundTo(projectID))
	return `"` + prefix + k.id + ":" + base64.RawStdEncoding.EncodeToString(box) + `"`
}

// Open returns the text of a payload. A payload that is not sealed is returned
// unchanged. It fails with ErrUnknownKey, or if the payload was changed.
func (r *Keyring) Open(projectID int64, payload string) (string, error) {
	if !IsSealed(payload) {
		return payload, nil
	}
	id, encoded, _ := strings.Cut(strings.TrimSuffix(payload[1+len(prefix):], `"`), ":")
	box, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPayload, err)
	}
	for _, k := range r.keys {
		if k.id != id || len(box) < k.aead.NonceSize() {
			continue
		}
		text, err := k.aead.Open(nil, box[:k.aead.NonceSize()], box[k.aead.NonceSize():], boundTo(projectID))
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrPayload, err)
		}
		return string(text), nil
	}
	return "", ErrUnknownKey
}

// Reseal returns a payload encrypted with the first key. It returns one that is
// unchanged, and fails as Open.
func (r *Keyring) Reseal(projectID int64, payload string) (string, error) {
	if strings.HasPrefix(payload, `"`+prefix+r.keys[0].id+":") {
		return payload, nil
	}
	text, err := r.Open(projectID, payload)
	if err != nil {
		return "", err
	}
	return r.Seal(projectID, text), nil
}

func boundTo(projectID int64) []byte {
	return strconv.AppendInt([]byte("flag payload of project "), projectID, 10)
}

// HasSealed reports whether JSON has an encrypted payload.
func HasSealed(raw json.RawMessage) bool { return bytes.Contains(raw, []byte(`"\"`+prefix)) }

// IsSealed reports whether a payload is encrypted.
func IsSealed(payload string) bool { return strings.HasPrefix(payload, `"`+prefix) }

// Redact returns JSON in which Redacted replaces every encrypted payload. JSON
// without one is returned unchanged.
func Redact(raw json.RawMessage) json.RawMessage {
	const begin, end = `"\"` + prefix, `\""`
	if !bytes.Contains(raw, []byte(begin)) {
		return raw
	}
	redacted, _ := json.Marshal(Redacted) // strings always encode
	var out []byte
	for {
		before, rest, found := bytes.Cut(raw, []byte(begin))
		out = append(out, before...)
		if !found {
			return out
		}
		_, after, closed := bytes.Cut(rest, []byte(end))
		if !closed {
			return append(append(out, begin...), rest...)
		}
		out = append(out, redacted...)
		raw = after
	}
}
