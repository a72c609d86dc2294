// Package chain makes the activity log tamper-evident: a chain of SHA-256 hashes in
// which each entry names the hash of the entry before it.
//
// A change writes its entry in its own transaction, without a number. Seal, which runs
// right after, gives unsealed entries their numbers and hashes, in the order of their
// time, while it holds the lock of the head. So changes never wait for each other
// because of the chain, and several servers on one database never fork it. There is
// one chain for the installation: an entry of one organization cannot disappear
// without a gap in the numbers.
//
// The hash of an entry is that of a JSON text with every column in a fixed order (see
// canonical). The detail is part of it as the SHA-256 of a random salt and the text.
// Redact replaces the detail and the salt of an entry, as the encryption of payloads
// does, and adds an entry that names the new digest: the hashes stay, and the former
// text cannot be guessed from its digest. Cut removes the oldest entries, remembers the
// hash of the last one as a checkpoint, and adds an entry with the same hash.
//
// Verify finds changed, removed and reordered entries. A process that can write the
// database can also compute a new chain, from any entry on. An anchor, a former head
// that is kept elsewhere, finds that. An entry that was not sealed yet can be changed
// unnoticed: usually for less than a second.
package chain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Scope is the scope of entries about the log itself.
const Scope = "ActivityLog"

// What happens to the log itself.
const (
	redacted = "redacted" // the detail of an entry was replaced
	cut      = "cut"      // retention removed the oldest entries
)

// genesis is the previous hash of the first entry.
var genesis = strings.Repeat("0", sha256.Size*2)

// canonical is the text that is hashed. Its fields, their order and their encoding
// never change: another encoding needs another version.
type canonical struct {
	Version        int    `json:"version"`
	Sequence       int64  `json:"sequence"`
	Previous       string `json:"previous"`
	ID             string `json:"id"`
	CreatedAt      string `json:"created_at"`
	OrganizationID string `json:"organization_id"`
	ProjectID      int64  `json:"project_id"`
	Scope          string `json:"scope"`
	ItemID         string `json:"item_id"`
	Activity       string `json:"activity"`
	UserID         int64  `json:"user_id"`
	UserName       string `json:"user_name"`
	UserEmail      string `json:"user_email"`
	KeyID          int64  `json:"personal_api_key_id"`
	Client         string `json:"client_address"`
	UserAgent      string `json:"user_agent"`
	RequestID      string `json:"request_id"`
	Digest         string `json:"detail_sha256"`
}

const (
	version    = 1
	timeLayout = "2006-01-02T15:04:05.000000Z"
)

// text returns the canonical text of the row.
func (r *Row) text() []byte {
	out, err := jsontext.Marshal(canonical{
		version, r.Sequence, r.Previous, r.ID, r.CreatedAt.UTC().Format(timeLayout), r.OrganizationID, r.ProjectID, r.Scope, r.ItemID, r.Activity,
		r.UserID, r.UserName, r.UserEmail, r.KeyID, r.Client, r.UserAgent, r.RequestID, r.Digest,
	})
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return out
}

// seal makes the row the entry after head.
func (r *Row) seal(head Head) {
	r.Sequence, r.Previous = head.Sequence+1, head.hashOrGenesis()
	r.Salt = newSalt()
	r.Digest = digest(r.Salt, r.Detail)
	r.Hash = sum(r.text())
}

// name describes the row to an operator.
func (r *Row) name() string {
	who := r.UserEmail
	if who == "" {
		who = r.UserName
	}
	if who == "" {
		who = "the system"
	}
	return fmt.Sprintf("entry %d (%s, %s %s %s by %s at %s)", r.Sequence, r.ID, r.Scope, r.ItemID, r.Activity, who, r.CreatedAt.UTC().Format(timeLayout))
}

func newSalt() string {
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return hex.EncodeToString(salt[:])
}

func digest(salt, detail string) string { return sum([]byte(salt + detail)) }

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// Head is the newest sealed entry. Sequence 0 is an empty chain.
type Head struct {
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
}

func (h Head) hashOrGenesis() string {
	if h.Sequence == 0 {
		return genesis
	}
	return h.Hash
}

// String returns the head in the form that Parse reads: the number, a colon, the hash.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Sequence, h.Hash) }

// Parse returns the head of a text of String.
func Parse(text string) (Head, error) {
	var h Head
	if n, err := fmt.Sscanf(text, "%d:%s", &h.Sequence, &h.Hash); n != 2 || err != nil || len(h.Hash) != len(genesis) || h.Sequence < 1 {
		return Head{}, fmt.Errorf("%q is no head of an activity log: it looks like 42:0123…, as guidon audit head prints it", text)
	}
	return h, nil
}
