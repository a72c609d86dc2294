package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// outage is how long a personal key that was good goes on to be answered when
// the store cannot be asked. It is not for ever: a key may have been revoked
// through another node that does reach the store.
const outage = 5 * time.Minute

var errBadPersonalKey = fault.New(fault.Unauthenticated, "authentication_failed", "Personal API key is invalid.")

// known is a personal key that was found good.
type known struct {
	principal *Principal
	version   int64 // of the accounts, read before the key
	at        time.Time
}

// people holds the personal keys that were used lately.
type people struct {
	limit int

	mu    sync.Mutex
	byKey map[digest]known
}

func newPeople(limit int) *people { return &people{limit: limit, byKey: map[digest]known{}} }

func (p *people) get(d digest) (known, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.byKey[d]
	return k, ok
}

func (p *people) put(d digest, k known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byKey) >= p.limit {
		clear(p.byKey)
	}
	p.byKey[d] = k
}

func (p *people) drop(d digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, d)
}

// PrincipalByKey returns who holds a personal key. It fails with
// Unauthenticated authentication_failed when the key is unknown or revoked, or
// its user is revoked or no longer in the organization, and with Unavailable
// when that cannot be found out now; a key used within the last minutes stays
// good while the store is down. The answer is shared and must not be changed.
func (s *Service) PrincipalByKey(ctx context.Context, personalKey string) (*Principal, error) {
	key := strings.TrimSpace(personalKey)
	if key == "" || len(key) > maxPersonalKey {
		return nil, errBadPersonalKey
	}
	d := digestOf(key)
	k, ok := s.people.get(d)
	if ok && time.Since(k.at) < s.cfg.PrincipalTTL && k.version == s.version() {
		s.used.now(k.principal.KeyID)
		return k.principal, nil
	}
	if s.unknown.has(string(d[:])) {
		return nil, errBadPersonalKey
	}
	p, err := s.askPrincipal(ctx, d)
	switch {
	case err == nil:
		s.used.now(p.KeyID)
		return p, nil
	case fault.Is(err, fault.NotFound):
		return nil, errBadPersonalKey
	case ok && time.Since(k.at) < outage:
		return k.principal, nil
	}
	return nil, fault.New(fault.Unavailable, "server_error", "Personal API keys cannot be checked now.").
		After(time.Second).Because(err)
}

// version is that of the accounts in memory; 0 before they were read.
func (s *Service) version() int64 {
	if m := s.memory.Load(); m != nil {
		return m.version
	}
	return 0
}

// askPrincipal asks the store, once for all who ask for the same key at once.
func (s *Service) askPrincipal(ctx context.Context, d digest) (*Principal, error) {
	answer := s.loading.DoChan(string(d[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		version := s.version()
		p, err := s.store.principal(ctx, d)
		switch {
		case err == nil:
			s.people.put(d, known{principal: p, version: version, at: time.Now()})
		case fault.Is(err, fault.NotFound):
			s.people.drop(d)
			s.unknown.add(string(d[:]))
		}
		return p, err
	})
	select {
	case a := <-answer:
		p, _ := a.Val.(*Principal)
		return p, a.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
