package backup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/backup/schedule"
	"github.com/guidonhq/guidon/core/journal"
)

// Module makes the backups of a server. It needs a Source.
var Module = fx.Module("backup", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg Config, src Source, journal journal.Config, log *zap.Logger, reg prometheus.Registerer) (*schedule.Scheduler, error) {
	m, err := NewMaker(cfg, src)
	if err != nil {
		return nil, err
	}
	times, err := cfg.times()
	if err != nil {
		return nil, err
	}
	s := schedule.New(schedule.Options{
		Times: times, Keep: schedule.Retention{Last: cfg.Keep, Daily: cfg.KeepDaily, Weekly: cfg.KeepWeekly, Monthly: cfg.KeepMonthly},
		RetryMin: schedule.DefaultRetryMin, RetryMax: schedule.DefaultRetryMax, Made: src.Made,
	}, m, log)
	if longest := times.Longest(); times.Enabled() && journal.MaxAge > 0 && journal.MaxAge < longest+time.Hour {
		log.Warn("journal kept for less than the time between two backups: a restore may lose events; raise journal.max_age and journal.max_bytes",
			zap.Duration("max_age", journal.MaxAge), zap.Duration("between_backups", longest))
	}
	lc.Append(fx.StartStopHook(s.Start, s.Stop))
	return s, s.Register(reg)
}
