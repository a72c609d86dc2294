package activity

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Config are the settings of the log.
type Config struct {
	// Retention is the age at which entries are deleted; 0 keeps them.
	Retention time.Duration `koanf:"retention"`
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
	cfg     Config
	log     *Log
	logger  *zap.Logger
	service retry.Service
}

// NewRetention returns a Retention that has not started.
func NewRetention(cfg Config, l *Log, logger *zap.Logger) *Retention {
	return &Retention{cfg: cfg, log: l, logger: logger.Named("activity")}
}

// Start begins to delete old entries.
func (r *Retention) Start(context.Context) error {
	r.service.Start()
	if r.cfg.Retention > 0 {
		r.service.Every(retentionInterval, r.deleteOld)
	}
	return nil
}

// Stop waits for the deletion at hand.
func (r *Retention) Stop(ctx context.Context) error { return r.service.Stop(ctx) }

func (r *Retention) deleteOld(ctx context.Context) {
	n, err := r.log.DeleteBefore(ctx, time.Now().Add(-r.cfg.Retention))
	switch {
	case err != nil && ctx.Err() == nil:
		r.logger.Warn("old activity not deleted", zap.Error(err))
	case n > 0:
		r.logger.Info("old activity deleted", zap.Int64("entries", n))
	}
}
