package limit

import (
	"context"
	"net/netip"

	"github.com/guidonhq/guidon/core/fault"
)

// maxAddresses bounds the memory of Failures: about 15 MB.
const maxAddresses = 100_000

// Failures limits how often the clients behind one address may send keys that do
// not exist. Past the limit a key is refused before it is looked up, unless it is
// known to be valid: clients that share an address with the one at fault go on.
// Its methods are safe for concurrent use.
type Failures struct {
	limiter *Adjustable[netip.Addr]
	known   func(key string) bool
	refused func()
}

// NewFailures returns the limit r. known reports, from memory, whether a key is
// valid; nil: no key is known. refused is called for each refusal.
func NewFailures(r Rate, known func(key string) bool, refused func()) *Failures {
	if known == nil {
		known = func(string) bool { return false }
	}
	return &Failures{limiter: NewAdjustable[netip.Addr](r, maxAddresses), known: known, refused: refused}
}

// SetRate changes the limit.
func (f *Failures) SetRate(r Rate) { f.limiter.SetRate(r) }

// Find looks up a key with find, within the limit of the client's address, and
// counts an Unauthenticated error of it. It fails with Throttled past the limit.
// address is called only if it is needed.
func Find[T any](ctx context.Context, f *Failures, address func() netip.Addr, key string, find func(context.Context, string) (T, error)) (T, error) {
	limiter := f.limiter.now()
	if limiter.Used() {
		if err := limiter.Exhausted(address()); err != nil && !f.known(key) {
			f.refused()
			var none T
			return none, err
		}
	}
	found, err := find(ctx, key)
	if limiter != nil && fault.Is(err, fault.Unauthenticated) {
		_ = limiter.Take(address()) // the next request is refused
	}
	return found, err
}
