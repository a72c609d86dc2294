package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/ephemeral"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/core/startmemory"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

type serveCmd struct {
	ephemeral.Flags `embed:""`
	Roles           []string `help:"Do only this, in place of the setting roles: capture, decide, manage, process, deliver." placeholder:"ROLE"`
}

// forceAfter is how long after the first signal another one ends the process. Before
// that it has no effect: timeout and npm send a signal to the process and to its group.
const forceAfter = time.Second

// Run serves until SIGINT or SIGTERM; a second signal, a second later, ends the process
// immediately. SIGHUP reloads the config, as a change of its file does.
func (c serveCmd) Run(e *env) (err error) {
	if len(c.Roles) > 0 { // a reload of the config reads it again
		if err := os.Setenv("GUIDON_ROLES", strings.Join(c.Roles, ",")); err != nil {
			return err
		}
	}
	cfg, err := e.config()
	if err != nil {
		return err
	}
	opts := options()
	opts.Out, opts.ConfigFile = e.out, e.path()
	end, err := c.Prepare(&cfg, &opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	output.Append(os.Stdout, os.Stderr)
	limitMemory()
	addProcessor()
	time.AfterFunc(startmemory.Delay, startmemory.Release)
	// Signals are caught until the process ends: a late one must not stop the removal of
	// the data of an ephemeral server.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(forceAfter, stop) })
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	opts.Hangup = hangup
	return c.Explain(app.Serve(ctx, cfg, opts))
}

// options returns those of every server of this binary.
func options() app.Options {
	return app.Options{Version: version, Bundled: bundled, BundledNames: plugins.Names(), Schema: bundledSchema, Operators: plugins.Operators}
}

// limitMemory passes 75 % of the memory limit of the container to the runtime,
// which then collects garbage more often near it. SQLite needs the rest: it copies
// large records in memory of its own, which the runtime does not count. GOMEMLIMIT
// overrides it; without a limit nothing changes.
func limitMemory() {
	_, _ = memlimit.Set(memlimit.WithRatio(0.75), memlimit.WithProvider(memlimit.FromCgroup))
}

// addProcessor lets one more goroutine run than there are processors. The runtime
// looks for requests that have arrived when a processor has nothing to run, and
// otherwise every 10 ms: large requests and the garbage collector can occupy all of
// them for so long, while the system shares its processors in shorter slices.
// GOMAXPROCS in the environment overrides it.
func addProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// bundled returns the command line of a bundled plugin, which starts this
// executable. It returns nil for an unknown name.
func bundled(name string) []string {
	if _, ok := plugins.Find(name); !ok {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "plugin", "exec", name}
}

// bundledSchema returns the JSON schema for the config of a bundled plugin used as
// that kind, or nil if the plugin does not exist or does not offer the kind.
func bundledSchema(name, kind string) []byte {
	p, ok := plugins.Find(name)
	if !ok {
		return nil
	}
	var plugin any
	switch {
	case kind == "sink" && p.Sink != nil:
		plugin = p.Sink()
	case kind == "notifier" && p.Notifier != nil:
		plugin = p.Notifier()
	case kind == "matcher" && p.Matcher != nil:
		plugin = p.Matcher()
	default:
		return nil
	}
	var config any
	if c, ok := plugin.(sdk.Configured); ok {
		config = c.Config()
	}
	var schema map[string]any
	if json.Unmarshal(sdk.Schema(config), &schema) != nil {
		return nil
	}
	schema["description"] = p.Summary
	out, _ := json.Marshal(schema) // it was JSON
	return out
}
