package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/commandline"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/web"
)

// Local is the management API of a server within the process of a command: without
// addresses, plugins, and everything that takes in, processes or deletes events. It holds
// the lock of the data directory.
type Local struct {
	// Project is the project of the command.
	Project auth.Project
	// Name names the database, without secrets.
	Name string

	identity *commandline.Identity
	server   *web.Server
	app      *fx.App
	chain    *chain.Chain
}

// OpenLocal opens the management API on the database named by cfg for a project; 0 is
// the first one. It creates and migrates nothing, and fails with the errors of
// db.OpenExisting, NotFound for the project, and an error that names the way through the
// address if another process holds the data directory.
func OpenLocal(ctx context.Context, cfg Config, opts Options, project int64) (*Local, error) {
	l := &Local{}
	if err := l.identify(ctx, cfg, project); err != nil {
		return nil, err
	}
	if err := backup.CheckComplete(cfg.DataDir); err != nil {
		return nil, err
	}
	cfg.Log.Level, cfg.Roles = "error", nil
	opts.useLog(cfg)
	opts.Seed, opts.Hangup, opts.ConfigFile = nil, nil, ""
	opened := &opened{}
	l.app = fx.New(
		fx.Decorate(func(lc fx.Lifecycle) fx.Lifecycle { return idle{lc} }),
		fx.Decorate(func(a web.Auth) web.Auth { return commandline.Auth{Auth: a, Identity: l.identity} }),
		fx.Supply(opened, requestlog.Starting{Context: ctx}), foundation, modules(cfg, opts),
		fx.Populate(&l.server, &l.chain), fx.Invoke(mount, func(d *db.DB) { l.Name = d.String() }),
	)
	if err := l.app.Err(); err != nil {
		opened.close()
		return nil, explainLocal(rootCause(err), cfg)
	}
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := l.app.Start(start); err != nil {
		return nil, rootCause(err)
	}
	return l, nil
}

// identify finds the project, before anything is locked.
func (l *Local) identify(ctx context.Context, cfg Config, project int64) error {
	a, err := OpenAdmin(ctx, cfg)
	if err != nil {
		return err
	}
	if project != 0 {
		l.Project, err = a.Project(ctx, project)
	} else {
		var all []auth.Project
		if all, err = a.Projects(ctx, ""); err == nil && len(all) == 0 {
			err = errors.New("the database has no project: guidon project create makes one")
		}
		if err == nil {
			l.Project = all[0]
		}
	}
	l.identity = commandline.NewIdentity(l.Project)
	return closing(a, err)
}

// explainLocal adds the other way to the error of a data directory that is in use.
func explainLocal(err error, cfg Config) error {
	if !errors.Is(err, journal.ErrLocked) {
		return err
	}
	return fmt.Errorf("%w\na running server has the data directory %s: call it with --server URL and a personal key (or guidon login), or stop it", err, cfg.DataDir)
}

// Key returns the key of the command, which only this Local accepts.
func (l *Local) Key() string { return l.identity.Key() }

// RoundTrip implements http.RoundTripper. See web.Server.RoundTrip.
func (l *Local) RoundTrip(req *http.Request) (*http.Response, error) { return l.server.RoundTrip(req) }

// Close seals the entries of the activity log and closes the database and the journal.
func (l *Local) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	_ = l.chain.SealAll(ctx) // a server seals them later
	return rootCause(l.app.Stop(ctx))
}

// idle is a lifecycle that starts and stops nothing.
type idle struct{ real fx.Lifecycle }

// Append implements fx.Lifecycle.
func (idle) Append(fx.Hook) {}

// local returns a module whose components start and stop in the process of a command,
// too.
func local(parts ...fx.Option) fx.Option {
	return fx.Module("local", append(parts, fx.Decorate(func(lc fx.Lifecycle) fx.Lifecycle {
		if i, ok := lc.(idle); ok {
			return i.real
		}
		return lc
	}))...)
}
