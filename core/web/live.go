package web

import (
	"time"

	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/web/accesslog"
	"github.com/guidonhq/guidon/core/web/forwarded"
)

// liveState is what the router derives from settings that may change while it serves.
type liveState struct {
	access         *accesslog.Selector
	logClient      bool
	origins        map[string]bool // that may call management paths
	requestTimeout time.Duration
	proxies        forwarded.Networks
}

// Follow applies the live settings of v, now and after each change. Requests that have
// begun keep the settings they began with.
func (s *Server) Follow(v *live.Value[Config]) { v.Follow(s.router.applyLive) }

// applyLive applies the live settings of cfg.
func (r *Router) applyLive(cfg *Config) {
	state := &liveState{logClient: cfg.LogClient, origins: map[string]bool{}, requestTimeout: cfg.RequestTimeout}
	state.access = accesslog.NewSelector(cfg.AccessLog, cfg.AccessSample)
	state.proxies, _ = forwarded.ParseNetworks(cfg.TrustedProxies) // Validate has parsed them
	for _, o := range cfg.ManageOrigins {
		state.origins[o] = true
	}
	r.live.Store(state)
	r.auth.publicRate.SetRate(cfg.PublicRate)
	r.auth.manageRate.SetRate(cfg.ManageRate)
	r.auth.projectFailures.SetRate(cfg.FailedKeyRate)
	r.auth.personalFailures.SetRate(cfg.FailedKeyRate)
}

// proxies returns the trusted proxies that are in force.
func (r *Router) proxies() forwarded.Networks { return r.live.Load().proxies }
