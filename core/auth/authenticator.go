package auth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/guidonhq/guidon/core/auth/keyusage"
	"github.com/guidonhq/guidon/core/retry"
)

// authenticator answers keys from memory. Projects and their keys are an
// immutable snapshot that is replaced when the version of the accounts in the
// database changes; personal keys are cached one by one.
//
// It does not use the snapshot package: an unknown key forces a refresh on the
// request path, and concurrent requests must share its result also when it
// fails, so that an outage costs one query in 250 ms and not one a request.
type authenticator struct {
	cfg     Config
	store   *store
	log     *zap.Logger
	metrics metrics

	snapshot atomic.Pointer[snapshot]
	refresh  refresher
	unknown  *negativeCache // project keys, and digests of personal keys

	principals *principalCache
	loading    singleflight.Group
	usage      *keyusage.Usage

	mu       sync.Mutex
	onChange []func()
	service  retry.Service
}

func newAuthenticator(cfg Config, st *store, log *zap.Logger, m metrics) *authenticator {
	return &authenticator{
		cfg:        cfg,
		store:      st,
		log:        log,
		metrics:    m,
		refresh:    newRefresher(),
		unknown:    newNegativeCache(cfg.MaxRemembered, cfg.RefreshInterval),
		principals: newPrincipalCache(cfg.MaxRemembered),
		usage:      keyusage.New(),
	}
}

// Start reads all projects and keys and keeps them current until Stop. It fails
// if they cannot be read, unless the server waits for its database: then they
// are read as soon as it is ready.
func (a *authenticator) Start(ctx context.Context) error {
	ready := a.store.db.IsReady()
	if _, err := a.refreshedSince(ctx, time.Now()); err != nil && ready {
		return fmt.Errorf("read projects and their keys: %w", err)
	}
	a.service.Start()
	a.service.EveryOr(a.cfg.RefreshInterval, a.store.db.Wakes.Accounts.Follow(), func(ctx context.Context) {
		_, _ = a.refreshedSince(ctx, time.Now()) // the refresher logs failures
	})
	a.service.Every(usageInterval, func(ctx context.Context) {
		if err := a.saveUsage(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("key usage save failed", zap.Error(err))
		}
	})
	return nil
}

// Stop ends the refreshing and saves when keys were last used.
func (a *authenticator) Stop(ctx context.Context) error {
	if err := a.service.Stop(ctx); err != nil {
		return err
	}
	return a.saveUsage(ctx)
}

// OnChange adds a callback that runs after projects or keys in memory changed,
// through this or another process. It runs on the goroutine that found the
// change, possibly concurrently with itself, and should return soon.
func (a *authenticator) OnChange(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onChange = append(a.onChange, f)
}

func (a *authenticator) notifyChange() {
	a.mu.Lock()
	callbacks := a.onChange
	a.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}
