package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

type serveVerb struct{}

// Run serves until SIGINT or SIGTERM; a second signal ends the process at once.
// SIGHUP reads the config again, as a change of its file does.
func (serveVerb) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	return app.Serve(ctx, cfg, app.Options{
		Version: version, Out: e.out, Bundled: bundled, BundledNames: plugins.Names(), Schema: bundledSchema, Operators: plugins.Operators,
		ConfigFile: e.path(), Hangup: hangup,
	})
}

// bundled is the command line of a bundled plugin: this very executable.
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

// bundledSchema describes the config of a bundled plugin, used as that kind.
func bundledSchema(name, kind string) []byte {
	p, ok := plugins.Find(name)
	if !ok {
		return nil
	}
	var made any
	switch {
	case kind == "sink" && p.Sink != nil:
		made = p.Sink()
	case kind == "notifier" && p.Notifier != nil:
		made = p.Notifier()
	case kind == "matcher" && p.Matcher != nil:
		made = p.Matcher()
	default:
		return nil
	}
	if c, ok := made.(sdk.Configured); ok {
		return sdk.Schema(c.Config())
	}
	return sdk.Schema(nil)
}

type migrateVerb struct{}

func (migrateVerb) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	return app.Migrate(context.Background(), cfg, e.out)
}
