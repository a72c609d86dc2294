package app

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/greeting"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/definitionfile"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/roles"
	"github.com/guidonhq/guidon/core/seed"
	"github.com/guidonhq/guidon/core/web"
)

// bootstrap creates the accounts of a first run at the start, or as soon as the database is ready,
// unless other servers serve management.
func (s *Server) bootstrap(lc fx.Lifecycle, has roles.Set, d *db.DB, a *auth.Service) {
	if !has.Has(roles.Manage) {
		s.silent = true
		close(s.late)
		return
	}
	lc.Append(fx.StartStopHook(func(ctx context.Context) (err error) {
		if d.IsReady() {
			defer close(s.late)
			if err := s.markSeed(); err != nil {
				return err
			}
			s.First, err = a.Bootstrap(ctx)
			return err
		}
		s.background.Start()
		s.background.Go(func(ctx, _ context.Context) { s.bootstrapLate(ctx, d, a) })
		return nil
	}, s.background.Stop))
}

func (s *Server) bootstrapLate(ctx context.Context, d *db.DB, a *auth.Service) {
	backoff := retry.Backoff{Min: time.Second, Max: 10 * time.Second}
	for d.WaitReady(ctx) {
		first, err := a.Bootstrap(ctx)
		if err == nil {
			s.First = first
			close(s.late)
			return
		}
		s.log.Warn("first accounts not created; retrying", zap.Error(err))
		if !backoff.Sleep(ctx) {
			return
		}
	}
}

// seeding fills a fresh server before it listens.
type seeding func(context.Context, *web.Server) error

// markSeed notes in the data directory that a seed begins, before the first accounts exist: a start
// that ends in between leaves a database that has projects. It fails after such a start.
func (s *Server) markSeed() (err error) {
	if err := seed.Incomplete(s.dataDir); err != nil {
		if s.seedFile != nil {
			return err
		}
		s.log.Error("seed incomplete", zap.Error(err))
		return nil
	}
	if s.seedFile != nil {
		s.seedDone, err = seed.Mark(s.dataDir, s.seedFile.Name)
	}
	return err
}

// seed makes the content of f, which may be nil, if the database was empty.
func (s *Server) seed(ctx context.Context, f *definitionfile.File, w *web.Server) (err error) {
	switch {
	case f == nil:
		return nil
	case !s.DB.IsReady():
		return errors.New("the seed file needs a database that is ready")
	case s.First == nil:
		s.log.Warn("seed file ignored: the database has projects", zap.String("file", f.Name))
		return s.seedDone()
	}
	if s.Seeded, err = seed.Apply(ctx, f, s.First, s.accounts, w.Call); err != nil {
		return err
	}
	return s.seedDone()
}

// announce greets when the first accounts exist: now, or once the database is ready. Nil out prints
// nothing, nor does a server without the role manage.
func (s *Server) announce(out io.Writer) {
	if out == nil || s.silent {
		return
	}
	greet := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.greet(ctx, out)
	}
	select {
	case <-s.late:
		greet()
	default:
		s.background.Go(func(ctx, _ context.Context) {
			select {
			case <-s.late:
				greet()
			case <-ctx.Done():
			}
		})
	}
}

// greet prints the keys of a first run. On later starts it prints how to get a personal key as long
// as none was ever used, since the output of the first run may be lost. It never prints or replaces
// an existing personal key: the secret is not stored, and an unused key may be somewhere in a
// vault.
func (s *Server) greet(ctx context.Context, out io.Writer) {
	if s.First != nil {
		greeting.FirstRun(out, s.URL, s.First, s.links.New(ctx, s.First.User.Email))
		return
	}
	user, err := unusedFirstUser(ctx, s.accounts)
	if err != nil {
		s.log.Warn("first key usage lookup failed", zap.Error(err))
	}
	if user != 0 {
		greeting.UnusedKey(out, user)
	}
}

// unusedFirstUser returns the id of the only user if the user has personal keys and never used one;
// 0 otherwise.
func unusedFirstUser(ctx context.Context, a *auth.Service) (int64, error) {
	users, err := a.Users(ctx)
	if err != nil || len(users) != 1 {
		return 0, err
	}
	keys, err := a.PersonalKeys(ctx, users[0].ID)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	for _, k := range keys {
		if !k.LastUsedAt.IsZero() {
			return 0, nil
		}
	}
	return users[0].ID, nil
}
