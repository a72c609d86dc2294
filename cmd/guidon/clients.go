package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/guidonhq/guidon/app"
)

type clientsCmd struct {
	Install clientsInstallCmd `cmd:"" help:"Install a version of posthog-js, which pages with the HTML snippet load from the server."`
	List    clientsListCmd    `cmd:"" help:"List the installed versions, newest first."`
}

type clientsInstallCmd struct {
	Version string        `arg:"" optional:"" help:"Version to install, such as 1.449.2; default: the newest."`
	Timeout time.Duration `default:"5m" help:"How long the download may take."`
}

func (c clientsInstallCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	version, err := app.InstallClient(ctx, cfg, c.Version, e.out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "posthog-js %s\n", version)
	return err
}

type clientsListCmd struct{}

func (clientsListCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	versions, dir := app.InstalledClients(cfg)
	if len(versions) == 0 {
		_, err := fmt.Fprintf(e.out, "no version in %s; guidon clients install installs one\n", dir)
		return err
	}
	rows := make([][]any, len(versions))
	for i, v := range versions {
		rows[i] = []any{"posthog-js", v}
	}
	return e.table("LIBRARY VERSION", rows)
}
