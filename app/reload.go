package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/config"
	"github.com/guidonhq/guidon/core/config/filewatch"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
)

// reloadTimeout bounds the draining of plugins that were removed from the
// configuration.
const reloadTimeout = time.Minute

// reloader reads the configuration again while the server runs and applies its
// plugins section. It reports the other settings that changed: they need a
// restart. An invalid file changes nothing.
type reloader struct {
	file    string
	environ func() []string
	host    *host.Host
	log     *zap.Logger

	outcomes *prometheus.CounterVec
	good     prometheus.Gauge

	mu      sync.Mutex
	started Config // the configuration at the start of the server
	plugins settings.Config
	failed  []byte // the content of the file that could not be used, if it was the last one
}

// Reloaded is the result of a reload.
type Reloaded struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	// RestartNeeded names the changed settings that take effect only after a
	// restart of the server.
	RestartNeeded []string `json:"restart_needed"`
	// DryRun is true for an answer of Preview, which has what a reload would do.
	DryRun bool `json:"dry_run"`
	// Instances has each instance of a dry run; nil otherwise.
	Instances []reloadplan.Change `json:"instances,omitempty"`
}

func newReloader(cfg Config, opts Options, h *host.Host, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r := &reloader{
		file: opts.ConfigFile, environ: opts.Environ, host: h, log: log.Named("reload"), started: cfg, plugins: cfg.Plugins,
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
func provideReloader(lc fx.Lifecycle, cfg Config, opts Options, h *host.Host, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r, err := newReloader(cfg, opts, h, log, reg)
	if err != nil {
		return nil, err
	}
	w := &filewatch.Watcher{
		File: opts.ConfigFile, Hangup: opts.Hangup, Log: r.log, Changed: r.applyChanged,
		HungUp: func(ctx context.Context, source []byte) { _, _ = r.apply(ctx, "hangup", source) }, // apply logs the error
	}
	lc.Append(fx.StartStopHook(w.Start, w.Stop))
	return r, nil
}

// Reload reads the configuration and applies its plugins section. cause is the
// reason for the log. An unusable configuration is an Invalid error with the
// reason and changes nothing.
func (r *reloader) Reload(ctx context.Context, cause string) (Reloaded, error) {
	return r.apply(ctx, cause, filewatch.Read(r.file))
}

// applyChanged applies the file after a change, unless its content was refused before.
func (r *reloader) applyChanged(ctx context.Context, source []byte) {
	r.mu.Lock()
	known := r.failed != nil && bytes.Equal(r.failed, source)
	r.mu.Unlock()
	if !known {
		_, _ = r.apply(ctx, "file changed", source) // apply logs the error
	}
}

// apply is Reload with the content of the file.
func (r *reloader) apply(ctx context.Context, cause string, source []byte) (Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, err := r.reload(ctx, source)
	log := r.log.With(zap.String("cause", cause))
	r.failed = nil
	if err != nil {
		r.failed = source
		r.outcomes.WithLabelValues("error").Inc()
		r.good.Set(0)
		log.Error("config reload failed; the plugins run as before", zap.Error(err))
		return out, fault.New(fault.Invalid, "invalid_config", err.Error())
	}
	r.outcomes.WithLabelValues("ok").Inc()
	r.good.Set(1)
	log.Info("config reloaded", zap.Strings("added", out.Added), zap.Strings("removed", out.Removed), zap.Strings("changed", out.Changed))
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
	out.compareInstances(r.plugins.Instances, cfg.Plugins.Instances)
	out.RestartNeeded = append(out.RestartNeeded, restartNeeded(r.started, cfg)...)
	for i := range out.Instances { // a reason may quote a text with a secret in it
		out.Instances[i].Reason = cfg.Redact(out.Instances[i].Reason)
	}
	return out, nil
}

func newReloaded() Reloaded {
	return Reloaded{Added: []string{}, Removed: []string{}, Changed: []string{}, RestartNeeded: []string{}}
}

func (r *reloader) reload(ctx context.Context, source []byte) (Reloaded, error) {
	out := newReloaded()
	cfg, err := r.load(source)
	if err != nil {
		return out, err
	}
	if r.started.Secrets != nil {
		r.started.Secrets.AddAll(cfg.Secrets)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadTimeout)
	defer cancel()
	if err := r.host.Apply(ctx, cfg.Plugins); err != nil {
		return out, err
	}
	out.compareInstances(r.plugins.Instances, cfg.Plugins.Instances)
	r.plugins = cfg.Plugins
	out.RestartNeeded = append(out.RestartNeeded, restartNeeded(r.started, cfg)...)
	return out, nil
}

// load returns the configuration with source as the content of its file. A file without
// content is not complete: it would remove all plugins.
func (r *reloader) load(source []byte) (Config, error) {
	if len(bytes.TrimSpace(source)) == 0 && r.file != "" && len(r.plugins.Instances) > 0 {
		if _, err := os.Stat(r.file); err != nil {
			return Config{}, fmt.Errorf("read config: %w", err)
		}
		return Config{}, fmt.Errorf("config %s is empty; to remove all plugins write plugins: {instances: []}", r.file)
	}
	return loadSource(r.file, source, r.environ())
}

// compareInstances records which instances were added, removed and changed.
func (d *Reloaded) compareInstances(before, after []settings.Instance) {
	old := map[string]settings.Instance{}
	for _, c := range before {
		old[c.Name] = c
	}
	for _, c := range after {
		if was, ok := old[c.Name]; !ok {
			d.Added = append(d.Added, c.Name)
		} else if !reflect.DeepEqual(was, c) {
			d.Changed = append(d.Changed, c.Name)
		}
		delete(old, c.Name)
	}
	d.Removed = append(d.Removed, config.SortedKeys(old)...)
}

// restartNeeded names the settings outside of plugins that differ, and those of
// plugins that are read only at the start.
func restartNeeded(started, now Config) []string {
	socketDir := started.Plugins.SocketDir != now.Plugins.SocketDir
	started.Plugins, now.Plugins = settings.Config{}, settings.Config{}
	out := differences("", reflect.ValueOf(started), reflect.ValueOf(now))
	if socketDir {
		out = append(out, "plugins.socket_dir")
	}
	slices.Sort(out)
	return out
}

// differences lists the dotted names of the settings that differ.
func differences(at string, a, b reflect.Value) []string {
	var out []string
	for f, v := range a.Fields() {
		name := f.Tag.Get("koanf")
		w := b.FieldByIndex(f.Index)
		switch {
		case name == ",squash":
			out = append(out, differences(at, v, w)...)
		case name == "" || name == "-" || reflect.DeepEqual(v.Interface(), w.Interface()):
		case v.Kind() == reflect.Struct:
			out = append(out, differences(config.Join(at, name), v, w)...)
		default:
			out = append(out, config.Join(at, name))
		}
	}
	return out
}
