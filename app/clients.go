package app

import (
	"context"
	"io"

	"github.com/guidonhq/guidon/core/clients/install"
	"github.com/guidonhq/guidon/core/clients/scripts"
)

// InstallClient installs a version of the browser library for the server of cfg,
// the newest for an empty one, and returns the version. Steps are written to log.
// A running server serves it after a few seconds.
func InstallClient(ctx context.Context, cfg Config, version string, log io.Writer) (string, error) {
	return install.Installer{Log: log}.Install(ctx, cfg.Clients.Directory(cfg.DataDir), version)
}

// InstalledClients returns the installed versions of the browser library, newest
// first, and their directory.
func InstalledClients(cfg Config) (versions []string, dir string) {
	dir = cfg.Clients.Directory(cfg.DataDir)
	return scripts.NewLibrary(dir).Versions(), dir
}
