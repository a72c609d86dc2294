package email

import (
	"crypto/sha256"

	"github.com/guidonhq/guidon/core/web/limit"
)

// Mailer sends e-mails without waiting for them. *Sender is one.
type Mailer interface {
	Enabled() bool
	Link(page string) string
	Queue(Job) error
}

var _ Mailer = (*Sender)(nil)

// addressRate limits the e-mails to one address: three at once, then one in ten minutes.
var addressRate = limit.Rate{PerSecond: 1.0 / 600, Burst: 3}

// maxAddresses bounds the memory of an AddressLimit: about 15 MB.
const maxAddresses = 100_000

// AddressLimit limits the e-mails of a kind to one address, by its digest, from all clients
// together. It is safe for concurrent use.
type AddressLimit struct {
	byDigest *limit.Limiter[[sha256.Size]byte]
}

// NewAddressLimit returns the limit of a node.
func NewAddressLimit() AddressLimit {
	return AddressLimit{limit.New[[sha256.Size]byte](addressRate, maxAddresses)}
}

// Allow counts an e-mail to an address. It fails with Throttled above the limit.
func (l AddressLimit) Allow(address string) error {
	return l.byDigest.Take(sha256.Sum256([]byte(address)))
}
