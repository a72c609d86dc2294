package persons

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
)

// Config is what an operator can say about persons and groups.
type Config struct {
	// GroupTypes is how many group types a project may have. Clients of this
	// protocol expect at least five.
	GroupTypes int `koanf:"group_types"`
	// CacheBytes is about how much memory holds properties read for flags and
	// actions.
	CacheBytes int `koanf:"cache_bytes"`
	// CacheTTL is how long a cached value is believed. Changes made by this
	// process are seen at once; those of another node after at most this long.
	CacheTTL time.Duration `koanf:"cache_ttl"`
}

// DefaultConfig is five group types and a cache of 64 MiB that is believed for
// three seconds.
func DefaultConfig() Config {
	return Config{GroupTypes: 5, CacheBytes: 64 << 20, CacheTTL: 3 * time.Second}
}

// Validate reports the first option that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.GroupTypes < 1 || c.GroupTypes > 1000:
		return errors.New("persons.group_types must be between 1 and 1000")
	case c.CacheBytes < 0:
		return errors.New("persons.cache_bytes must not be negative (0 turns the cache off)")
	case c.CacheTTL < 0:
		return errors.New("persons.cache_ttl must not be negative (0 turns the cache off)")
	}
	return nil
}

// MergeHook moves what another room keeps under the person from to the person
// into. It runs inside the transaction of the merge, before from is deleted;
// an error undoes the whole batch. Where both persons have something, what
// into has is to be kept.
type MergeHook func(ctx context.Context, projectID, from, into int64) error

// Service is what can be done with persons and groups. Its methods may be
// called from any number of goroutines.
type Service struct {
	cfg         Config
	db          *db.DB
	store       *store
	stage       stageStore
	cache       *cache
	loners      lonerSet
	hooks       []MergeHook
	typeHooks   []func(ctx context.Context, projectID int64) error
	deleteHooks []DeleteHook
	eraseHooks  []EraseHook
	log         *zap.Logger
	metrics     metrics
}

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *Service {
	s := &Service{
		cfg: cfg, db: d, store: newStore(d), stage: newStageStore(d),
		cache: newCache(cfg.CacheBytes, cfg.CacheTTL), log: log.Named("persons"), metrics: newMetrics(reg),
	}
	return s
}

// OnMerge adds a hook. All hooks must be added before the first batch.
func (s *Service) OnMerge(h MergeHook) { s.hooks = append(s.hooks, h) }

type metrics struct {
	created, merged, refused, retried prometheus.Counter
	hit, miss                         prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "persons", Name: name, Help: help})
	}
	reads := f.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "persons",
		Name: "cache_requests_total", Help: "Reads of stored properties by what the cache had."}, []string{"result"})
	return metrics{
		created: counter("created_total", "Persons made by the ingestion stage."),
		merged:  counter("merged_total", "Persons that became part of another one."),
		refused: counter("merges_refused_total", "Merges that were asked for and not allowed."),
		retried: counter("stage_retries_total", "Attempts of the stage that met a change of another node and began again."),
		hit:     reads.WithLabelValues("hit"),
		miss:    reads.WithLabelValues("miss"),
	}
}
