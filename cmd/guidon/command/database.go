package command

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Database are the flags that choose a database instead of a server.
type Database struct {
	Local bool   `help:"Use the database of the config, without a server."`
	Data  string `help:"Use the database in this data directory (or its guidon.db), without a server." placeholder:"DIR" type:"path"`
}

// chosen reports whether a flag chooses a database.
func (d Database) chosen() bool { return d.Local || d.Data != "" }

// config returns the config with the data directory of the flags.
func (d Database) config(e *Env) (app.Config, error) {
	cfg, err := e.Config()
	if err != nil || d.Data == "" {
		return cfg, err
	}
	if cfg.Database.URL != "" && !strings.HasPrefix(cfg.Database.URL, "sqlite:") {
		return cfg, errors.New("--data names a directory with an embedded database, and the config names another in database.url: use --local")
	}
	cfg.DataDir = d.Data
	if filepath.Base(d.Data) == "guidon.db" {
		cfg.DataDir = filepath.Dir(d.Data)
	}
	cfg.Database.URL = ""
	return cfg, nil
}

// connect returns a client of a server within this process, on the database.
func (d Database) connect(e *Env, project int64) (*remote.Client, error) {
	cfg, err := d.config(e)
	if err != nil {
		return nil, err
	}
	p := e.StartProgress("opening the database")
	l, err := app.OpenLocal(context.Background(), cfg, e.Options, project)
	p.Stop()
	if err != nil {
		return nil, err
	}
	e.Defer(l.Close)
	base, _, err := remote.LocalURL(cfg.HTTP.Address, cfg.HTTP.TLS.Enabled())
	if err != nil {
		return nil, err
	}
	return remote.NewInProcess(remote.Context{Name: l.Name, URL: base, Project: l.Project.ID, Key: l.Key()}, l), nil
}
