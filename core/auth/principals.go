package auth

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// maxOutage is how long a cached personal key stays valid while the database
// cannot be asked. It is bounded because the key may have been revoked through
// another node.
const maxOutage = 5 * time.Minute

var errBadPersonalKey = fault.New(fault.Unauthenticated, "authentication_failed", "Personal API key is invalid.")

// cachedPrincipal is the principal of a valid personal key.
type cachedPrincipal struct {
	principal *Principal
	version   int64 // of the accounts, read before the key
	at        time.Time
}

// principalCache holds the personal keys that were used lately.
type principalCache struct {
	limit int

	mu    sync.Mutex
	byKey map[apikey.Digest]cachedPrincipal
}

func newPrincipalCache(limit int) *principalCache {
	return &principalCache{limit: limit, byKey: map[apikey.Digest]cachedPrincipal{}}
}

func (p *principalCache) get(d apikey.Digest) (cachedPrincipal, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.byKey[d]
	return k, ok
}

func (p *principalCache) put(d apikey.Digest, k cachedPrincipal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byKey) >= p.limit {
		clear(p.byKey)
	}
	p.byKey[d] = k
}

func (p *principalCache) drop(d apikey.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, d)
}

// PrincipalByKey returns the principal of a personal key, or one that stands for
// the project of a secret key. It fails with Unauthenticated authentication_failed if the key is unknown or revoked, or
// its user is revoked or no longer in the organization; with Unauthenticated
// CodeExpired or CodeSecretExpired from the moment at which the key expires; and with Unavailable if
// the database cannot be asked; a key used within the last minutes stays valid
// in that case. The result is shared and must not be changed.
func (a *authenticator) PrincipalByKey(ctx context.Context, personalKey string) (*Principal, error) {
	p, err := a.cachedPrincipalByKey(ctx, personalKey)
	if err != nil {
		return nil, err
	}
	if err := p.CheckExpiry(time.Now()); err != nil {
		return nil, err
	}
	return p, nil
}

// The codes of the errors for an expired personal key and an expired secret key.
const (
	CodeExpired       = "expired_personal_api_key"
	CodeSecretExpired = "expired_secret_key"
)

// IsExpired reports whether err stands for an expired key.
func IsExpired(err error) bool {
	f := fault.From(err)
	return f != nil && (f.Code == CodeExpired || f.Code == CodeSecretExpired)
}

func (a *authenticator) cachedPrincipalByKey(ctx context.Context, personalKey string) (*Principal, error) {
	key := strings.TrimSpace(personalKey)
	if key == "" || len(key) > apikey.MaxPersonal {
		return nil, errBadPersonalKey
	}
	d := apikey.DigestOf(key)
	k, ok := a.principals.get(d)
	if ok && time.Since(k.at) < a.cfg.PrincipalTTL && k.version == a.Version() {
		a.usage.Record(ctx, k.principal.KeyID)
		return k.principal, nil
	}
	if a.unknown.has(string(d[:])) {
		return nil, errBadPersonalKey
	}
	p, err := a.loadPrincipal(ctx, d, apikey.IsSecret(key))
	switch {
	case err == nil:
		a.usage.Record(ctx, p.KeyID)
		return p, nil
	case fault.Is(err, fault.NotFound):
		return nil, errBadPersonalKey
	case ok && time.Since(k.at) < maxOutage:
		return k.principal, nil
	}
	return nil, fault.New(fault.Unavailable, db.CodeUnavailable, "Personal API keys cannot be checked now.").
		After(time.Second).Because(err)
}

// Version is the version of the accounts in memory: it changes with them. 0: none yet.
func (a *authenticator) Version() int64 {
	if m := a.snapshot.Load(); m != nil {
		return m.version
	}
	return 0
}

// loadPrincipal reads a principal. Concurrent calls for one version of a key share a query.
func (a *authenticator) loadPrincipal(ctx context.Context, d apikey.Digest, secret bool) (*Principal, error) {
	version := a.Version()
	loaded := a.loading.DoChan(fmt.Sprint(d, version), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
		defer cancel()
		read := a.store.principal
		if secret {
			read = a.store.secretPrincipal
		}
		p, err := read(ctx, d)
		switch {
		case err == nil:
			a.principals.put(d, cachedPrincipal{principal: p, version: version, at: time.Now()})
		case fault.Is(err, fault.NotFound):
			a.principals.drop(d)
			a.unknown.add(string(d[:]))
		}
		return p, err
	})
	select {
	case r := <-loaded:
		p, _ := r.Val.(*Principal)
		return p, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
