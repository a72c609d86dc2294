package ingestion

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/journal/clock"
	"github.com/guidonhq/guidon/core/retry"
)

// keepUsage is how long the usage of earlier periods is kept.
const keepUsage = 400 * 24 * time.Hour

// retentionInterval is the time between two deletions of old rows.
const retentionInterval = 10 * time.Minute

// Retention deletes old warnings, usage and dead letters. A clock that leaps
// ahead makes no row old until it has stayed there for a while.
type Retention struct {
	cfg         *live.Value[Config]
	warnings    *warning.Store
	usage       *capture.UsageStore
	deadLetters *deadletter.Service
	logger      *zap.Logger
	service     retry.Service
}

// NewRetention returns a Retention that has not started.
func NewRetention(cfg *live.Value[Config], d *db.DB, dead *deadletter.Service, logger *zap.Logger) *Retention {
	return &Retention{
		cfg: cfg, warnings: warning.NewStore(d), usage: capture.NewUsageStore(d), deadLetters: dead, logger: logger.Named("ingestion"),
	}
}

// Start begins to delete old rows.
func (r *Retention) Start(context.Context) error {
	ages := clock.New(nil)
	r.service.Start()
	r.service.Every(retentionInterval, func(ctx context.Context) { r.deleteOld(ctx, ages.Now()) })
	return nil
}

// Stop waits for the deletion at hand.
func (r *Retention) Stop(ctx context.Context) error { return r.service.Stop(ctx) }

func (r *Retention) deleteOld(ctx context.Context, now time.Time) {
	cfg := r.cfg.Load()
	err := errors.Join(
		r.warnings.DeleteBefore(ctx, now.Add(-cfg.KeepWarnings)),
		r.usage.DeleteBefore(ctx, now.Add(-keepUsage)),
		r.deadLetters.Expire(ctx, now.Add(-cfg.KeepDeadLetters)),
	)
	if err != nil && ctx.Err() == nil {
		r.logger.Warn("deletion of old rows failed", zap.Error(err))
	}
}
