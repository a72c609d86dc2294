package persons

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/persons/stage"
	"github.com/guidonhq/guidon/sdk"
)

// Config holds the settings of persons and groups.
type Config struct {
	// GroupTypes is the maximum number of group types of a project. Clients of
	// this protocol expect at least five.
	GroupTypes int `koanf:"group_types"`
	// CacheBytes is the approximate size of the cache of properties read for
	// flags and actions.
	CacheBytes int `koanf:"cache_bytes"`
	// CacheTTL is the lifetime of a cached value. Changes made by this process
	// show immediately, changes of another node after at most this time.
	CacheTTL time.Duration `koanf:"cache_ttl"`
	// SharedCacheTTL bounds CacheTTL on Postgres, where other nodes change persons.
	SharedCacheTTL time.Duration `koanf:"shared_cache_ttl"`
}

// DefaultConfig returns five group types and a cache of 64 MiB for three
// seconds, on Postgres for one and a half.
func DefaultConfig() Config {
	return Config{GroupTypes: 5, CacheBytes: 64 << 20, CacheTTL: 3 * time.Second, SharedCacheTTL: 1500 * time.Millisecond}
}

// lifetime returns the lifetime of a cached value with d.
func (c Config) lifetime(d *db.DB) time.Duration {
	if d.Postgres() {
		return min(c.CacheTTL, c.SharedCacheTTL)
	}
	return c.CacheTTL
}

// Validate returns an error for the first invalid setting.
func (c Config) Validate() error {
	switch {
	case c.GroupTypes < 1 || c.GroupTypes > 1000:
		return errors.New("persons.group_types must be between 1 and 1000")
	case c.CacheBytes < 0:
		return errors.New("persons.cache_bytes must not be negative (0 turns the cache off)")
	case c.CacheTTL < 0:
		return errors.New("persons.cache_ttl must not be negative (0 turns the cache off)")
	case c.SharedCacheTTL < 0:
		return errors.New("persons.shared_cache_ttl must not be negative (0 turns the cache off on Postgres)")
	}
	return nil
}

// Service manages persons. Groups are in its field Groups. Its methods may be
// called concurrently. It has one method for each read, change and hook.
type Service struct {
	// Groups manages groups and their types.
	Groups *Groups

	db          *db.DB
	store       *store
	stage       *stage.Stage
	cache       *cache
	deleteHooks []DeleteHook
	idHooks     []EraseHook
	eraseHooks  []EraseHook
	recorder    Recorder // may be nil
	counts      sync.Map // of counted, by the number of a large project
}

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, _ *zap.Logger, reg prometheus.Registerer) *Service {
	c, st := newCache(cfg.CacheBytes, cfg.lifetime(d), reg), newStore(d)
	return &Service{
		Groups: &Groups{db: d, store: st, cache: c},
		db:     d, store: st, cache: c,
		stage: stage.New(stage.Deps{DB: d, GroupTypes: cfg.GroupTypes, Registerer: reg, Committed: c.invalidate}),
	}
}

// Process applies a batch of events to persons and groups; see stage.Process.
func (s *Service) Process(ctx context.Context, batch []*sdk.Event) ([]stage.Warning, error) {
	return s.stage.Process(ctx, batch)
}

// OnMerge adds a hook. All hooks must be added before the first batch.
func (s *Service) OnMerge(h stage.MergeHook) { s.stage.OnMerge(h) }
