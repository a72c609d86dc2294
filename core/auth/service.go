package auth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/guidonhq/guidon/core/db"
)

// Service is what can be done with accounts. All methods may be called from
// any number of goroutines. It answers before Start and after Stop too; Start
// only keeps what it answers current.
type Service struct {
	cfg     Config
	store   *store
	log     *zap.Logger
	metrics metrics

	memory  atomic.Pointer[memory]
	refresh refresher
	unknown *unknown // project keys, and digests of personal keys, that nobody has

	people  *people
	loading singleflight.Group
	used    *used

	mu       sync.Mutex
	onChange []func()

	stop context.CancelFunc
	done chan struct{}
}

// New returns the service over the accounts in d. log and reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("register the metrics of auth: %w", err)
	}
	return &Service{
		cfg:     cfg,
		store:   &store{db: d},
		log:     log.Named("auth"),
		metrics: m,
		refresh: newRefresher(),
		unknown: newUnknown(cfg.MaxRemembered, cfg.RefreshInterval),
		people:  newPeople(cfg.MaxRemembered),
		used:    newUsed(),
	}, nil
}

// Start reads all projects and keys, and keeps them current until Stop. It
// fails when they cannot be read.
func (s *Service) Start(ctx context.Context) error {
	if _, err := s.current(ctx, time.Now()); err != nil {
		return fmt.Errorf("read projects and their keys: %w", err)
	}
	ctx, s.stop = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	go s.keepCurrent(ctx)
	return nil
}

// Stop ends what Start began and writes down which keys were used.
func (s *Service) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("stop keeping keys current: %w", ctx.Err())
	}
	return s.saveUsed(ctx)
}

// OnChange has f called after projects or keys in memory changed, whoever
// changed them. f is called on the goroutine that met the change, one call at
// a time or several at once, and should return soon.
func (s *Service) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange = append(s.onChange, f)
}

func (s *Service) announce() {
	s.mu.Lock()
	callbacks := s.onChange
	s.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}

// change runs fn in a transaction that moves the version of the accounts, and
// makes memory current once it has committed.
func (s *Service) change(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.store.write(ctx, fn, func() {
		if _, err := s.current(context.Background(), time.Now()); err != nil {
			s.log.Warn("keys in memory are behind the database", zap.Error(err))
		}
	})
}
