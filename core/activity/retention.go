package activity

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/retry"
)

// Config are the settings of the log.
type Config struct {
	// Retention is the age at which entries are deleted; 0 keeps them.
	Retention time.Duration `koanf:"retention" live:"true"`
}

// DefaultConfig keeps all entries.
func DefaultConfig() Config { return Config{} }

// Validate reports an invalid setting.
func (c Config) Validate() error {
	if c.Retention < 0 {
		return errors.New("retention must not be negative (0 keeps all entries)")
	}
	return nil
}

// retentionInterval is the time between two deletions of old entries.
const retentionInterval = time.Hour

// Retention deletes old entries between Start and Stop.
type Retention struct {
	cfg     *live.Value[Config]
	chain   *chain.Chain
	logger  *zap.Logger
	service retry.Service
}

// NewRetention returns a Retention that has not started.
func NewRetention(cfg *live.Value[Config], c *chain.Chain, logger *zap.Logger) *Retention {
	return &Retention{cfg: cfg, chain: c, logger: logger.Named("activity")}
}

// Start begins to delete old entries.
func (r *Retention) Start(context.Context) error {
	r.service.Start()
	changed := make(chan struct{}, 1)
	r.cfg.Follow(func(*Config) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	r.service.Go(func(ctx, _ context.Context) { r.run(ctx, changed) })
	return nil
}

// Stop waits for the deletion at hand.
func (r *Retention) Stop(ctx context.Context) error { return r.service.Stop(ctx) }

// run deletes at the start, after a change of the age, and each interval.
func (r *Retention) run(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTicker(retentionInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
		if age := r.cfg.Load().Retention; age > 0 {
			r.deleteOld(ctx, age)
		}
	}
}

func (r *Retention) deleteOld(ctx context.Context, age time.Duration) {
	n, err := r.chain.Cut(ctx, time.Now().Add(-age))
	switch {
	case err != nil && ctx.Err() == nil:
		r.logger.Warn("old activity not deleted", zap.Error(err))
	case n > 0:
		r.logger.Info("old activity deleted", zap.Int64("entries", n))
	}
}
