package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/plugins"
)

type serveVerb struct{}

// Run serves until SIGINT or SIGTERM; a second signal ends the process at once.
func (serveVerb) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return app.Serve(ctx, cfg, app.Options{Version: version, Out: e.out, Bundled: bundled, BundledNames: plugins.Names()})
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

type migrateVerb struct{}

func (migrateVerb) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	return app.Migrate(context.Background(), cfg, e.out)
}
