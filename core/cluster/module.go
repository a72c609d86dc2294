package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/db"
)

// Module provides the Member, its parts, and the notifications.
var Module = fx.Module("cluster", fx.Provide(newHub, newMember,
	func(m Member) (Jobs, Shares) { return m, m }))

func newHub(lc fx.Lifecycle, cfg Config, d *db.DB, log *zap.Logger) *notify.Hub {
	if !cfg.Enabled {
		d = nil
	}
	h := notify.New(d, log)
	if cfg.Enabled {
		h.Connect(&d.Wakes)
	}
	lc.Append(fx.StartStopHook(h.Start, h.Stop))
	return h
}

func newMember(lc fx.Lifecycle, cfg Config, info Info, d *db.DB, h *notify.Hub, log *zap.Logger, reg prometheus.Registerer) (Member, error) {
	if !cfg.Enabled {
		s := Alone()
		s.Info = info
		lc.Append(fx.StopHook(func(ctx context.Context) { _ = s.Drain(ctx) })) // what does not end has no lease to keep
		return s, nil
	}
	n, err := New(cfg, info, d, h, log)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StartStopHook(n.Start, n.Stop))
	return n, n.Register(reg)
}
