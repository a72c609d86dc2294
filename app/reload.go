package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/config/filewatch"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/logging"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/pluginconfig"
	"github.com/guidonhq/guidon/core/web"
)

// reloadTimeout bounds the draining of plugins that were removed from the configuration.
const reloadTimeout = time.Minute

// reloader reads the configuration again while the server runs and applies its
// plugins section and its live settings. It reports the other settings that changed:
// they need a restart. An invalid file changes nothing.
type reloader struct {
	file    string
	environ func() []string
	running *live.Value[Config] // the configuration in force
	host    *pluginconfig.Instances
	log     *zap.Logger

	outcomes *prometheus.CounterVec
	good     prometheus.Gauge

	mu     sync.Mutex
	audit  *activity.Audit
	failed []byte // the content of the file that could not be used, if it was the last one
}

// Reloaded is the result of a reload.
type Reloaded struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	// Applied names the other settings that changed and are in force.
	Applied []string `json:"applied"`
	// RestartNeeded names the changed settings that need a restart of the server.
	RestartNeeded []string `json:"restart_needed"`
	// DryRun is true for an answer of Preview, which has what a reload would do.
	DryRun bool `json:"dry_run"`
	// Instances has each instance of a dry run; nil otherwise.
	Instances []reloadplan.Change `json:"instances,omitempty"`
}

func newReloader(running *live.Value[Config], opts Options, h *pluginconfig.Instances, audit *activity.Audit, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r := &reloader{
		file: opts.ConfigFile, environ: opts.Environ, host: h, log: log.Named("reload"), running: running, audit: audit,
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_config_reloads_total", Help: "Reloads of the configuration, by outcome.",
		}, []string{"outcome"}),
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "guidon_config_reload_successful", Help: "1 when the last reload of the configuration succeeded, 0 otherwise.",
		}),
	}
	if r.environ == nil {
		r.environ = os.Environ
	}
	r.good.Set(1)
	for _, c := range []prometheus.Collector{r.outcomes, r.good} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register reload metrics: %w", err)
		}
	}
	return r, nil
}

// provideReloader returns the reloader and watches the file while the server
// runs.
func provideReloader(lc fx.Lifecycle, running *live.Value[Config], opts Options, h *pluginconfig.Instances, audit *activity.Audit, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r, err := newReloader(running, opts, h, audit, log, reg)
	if err != nil {
		return nil, err
	}
	w := &filewatch.Watcher{
		File: opts.ConfigFile, Hangup: opts.Hangup, Log: r.log, Changed: r.applyChanged,
		HungUp: func(ctx context.Context, source []byte) { _, _ = r.apply(ctx, nil, "hangup", source) }, // apply logs the error
	}
	lc.Append(fx.StartStopHook(w.Start, w.Stop))
	return r, nil
}

// Reload reads the configuration and applies its plugins section and its live settings
// for a principal. An unusable one is an Invalid error with the reason and changes nothing.
func (r *reloader) Reload(ctx context.Context, who *auth.Principal) (Reloaded, error) {
	return r.apply(ctx, who, "asked by "+who.User.Email, filewatch.Read(r.file))
}

// applyChanged applies the file after a change, unless its content was refused before.
func (r *reloader) applyChanged(ctx context.Context, source []byte) {
	r.mu.Lock()
	known := r.failed != nil && bytes.Equal(r.failed, source)
	r.mu.Unlock()
	if !known {
		_, _ = r.apply(ctx, nil, "file changed", source) // apply logs the error
	}
}

// apply is Reload with the content of the file.
func (r *reloader) apply(ctx context.Context, who *auth.Principal, cause string, source []byte) (Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, err := r.reload(ctx, who, cause, source)
	log := r.log.With(zap.String("cause", cause))
	r.failed = nil
	if err != nil {
		r.failed = source
		r.outcomes.WithLabelValues("error").Inc()
		r.good.Set(0)
		log.Error("config reload failed; nothing was changed", zap.Error(err))
		return out, fault.New(fault.Invalid, "invalid_config", err.Error())
	}
	r.outcomes.WithLabelValues("ok").Inc()
	r.good.Set(1)
	log.Info("config reloaded", zap.Strings("added", out.Added), zap.Strings("removed", out.Removed), zap.Strings("changed", out.Changed), zap.Strings("applied", out.Applied))
	if len(out.RestartNeeded) > 0 {
		log.Warn("changed settings need a restart", zap.Strings("settings", out.RestartNeeded))
	}
	return out, nil
}

// Preview returns what Reload would do and changes nothing. Its error is that of Reload.
func (r *reloader) Preview() (Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := newReloaded()
	out.DryRun = true
	cfg, err := r.load(filewatch.Read(r.file))
	if err == nil {
		out.Instances, err = r.host.Plan(cfg.Plugins)
	}
	if err != nil {
		return out, fault.New(fault.Invalid, "invalid_config", err.Error())
	}
	if _, err = out.compare(r.running.Load(), cfg); err != nil {
		return out, fault.New(fault.Invalid, "invalid_config", err.Error())
	}
	for i := range out.Instances { // a reason may quote a text with a secret in it
		out.Instances[i].Reason = cfg.Redact(out.Instances[i].Reason)
	}
	return out, nil
}

func newReloaded() Reloaded {
	return Reloaded{Added: []string{}, Removed: []string{}, Changed: []string{}, Applied: []string{}, RestartNeeded: []string{}}
}

// reload writes the entry of the activity log and applies the configuration. A user's
// reload is refused without the entry; that of a changed file is not, since the file may
// name another database.
func (r *reloader) reload(ctx context.Context, who *auth.Principal, cause string, source []byte) (Reloaded, error) {
	out := newReloaded()
	cfg, err := r.load(source)
	if err != nil {
		return out, err
	}
	running := r.running.Load()
	merged, err := out.compare(running, cfg)
	if err != nil {
		return newReloaded(), err
	}
	if running.Secrets != nil {
		running.Secrets.AddAll(cfg.Secrets)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadTimeout)
	defer cancel()
	if err := r.logReload(ctx, who, "reloaded", cause, running, &merged, &out); err != nil {
		if who != nil {
			return newReloaded(), err
		}
		r.log.Warn("activity log write failed: config reload", zap.Error(err))
	}
	if err := r.host.Apply(ctx, cfg.Plugins); err != nil {
		logged := r.logReload(ctx, who, "reload failed", cause, running, &merged, &out)
		return newReloaded(), errors.Join(err, logged)
	}
	r.running.Store(merged)
	return out, nil
}

// load returns the configuration with source as the content of its file. A file that is
// missing or without content is not complete: it would reset all settings and remove all
// plugins.
func (r *reloader) load(source []byte) (Config, error) {
	if len(bytes.TrimSpace(source)) == 0 && r.file != "" {
		if _, err := os.Stat(r.file); err != nil {
			return Config{}, fmt.Errorf("read config: %w; the settings in force stay", err)
		}
		return Config{}, fmt.Errorf("config %s is empty; for the default settings without plugins write {}", r.file)
	}
	return loadSource(r.file, source, r.environ())
}

// compare records how cfg differs from the configuration in force, and returns the one
// that comes into force: with the live settings and the plugins of cfg. It fails if they
// do not fit the settings that need a restart.
func (d *Reloaded) compare(running *Config, cfg Config) (Config, error) {
	added, removed, changed := reloadplan.Names(running.Plugins.Instances, cfg.Plugins.Instances)
	d.Added, d.Removed, d.Changed = append(d.Added, added...), append(d.Removed, removed...), append(d.Changed, changed...)
	file := cfg
	file.Plugins = running.Plugins
	merged, applied, restart := live.Merge(*running, file)
	d.Applied, d.RestartNeeded = append(d.Applied, applied...), append(d.RestartNeeded, restart...)
	merged.Plugins = cfg.Plugins
	if merged.Plugins.SocketDir = running.Plugins.SocketDir; cfg.Plugins.SocketDir != merged.Plugins.SocketDir {
		d.RestartNeeded = append(d.RestartNeeded, "plugins.socket_dir")
	}
	if err := merged.Validate(); err != nil && len(restart) > 0 {
		return merged, fmt.Errorf("the settings that apply without a restart do not fit those that need one: %w", err)
	}
	return merged, nil
}

// logReload adds what was done by a reload that changes something, or that a user asked
// for, to the activity log: the settings with their values, of instances the names only.
func (r *reloader) logReload(ctx context.Context, who *auth.Principal, done, cause string, before, after *Config, changes *Reloaded) error {
	e := &activity.Event{Scope: activity.Plugin, ItemID: "configuration", Activity: done, Name: cause}
	was, is := map[string]any{}, map[string]any{}
	for _, key := range changes.Applied {
		was[key], is[key] = live.Get(*before, key), live.Get(*after, key)
	}
	for name, instances := range map[string][]string{"plugins.added": changes.Added, "plugins.removed": changes.Removed, "plugins.changed": changes.Changed} {
		if len(instances) > 0 {
			is[name] = instances
		}
	}
	if len(is) == 0 && who == nil {
		return nil
	}
	e.Before, e.After = was, is
	return r.audit.Change(context.WithoutCancel(ctx), who, func(context.Context) (*activity.Event, error) { return e, nil })
}

// LiveKeys lists the settings that change without a restart, in order.
func LiveKeys() []string {
	out := live.Keys(reflect.TypeFor[Config]())
	for _, key := range leaves("plugins", reflect.TypeFor[settings.Config]()) {
		if key != "plugins.socket_dir" {
			out = append(out, key)
		}
	}
	return append(out, "plugins.instances")
}

// liveSettings provides the settings in force, as a whole and by section.
func liveSettings(cfg Config, opts Options) fx.Option {
	v := live.New(cfg)
	if opts.LogLevel != nil {
		v.Follow(func(c *Config) { opts.LogLevel.SetLevel(logging.LevelOf(c.Log)) })
	}
	return fx.Supply(v,
		live.Section(v, func(c *Config) web.Config { return c.HTTP }),
		live.Section(v, func(c *Config) activity.Config { return c.Activity }),
		live.Section(v, func(c *Config) journal.Config { return c.Journal.Config }),
		live.Section(v, func(c *Config) ingestion.Config { return c.Ingestion }),
		live.Section(v, func(c *Config) notifications.Config { return c.Notifications }),
	)
}
