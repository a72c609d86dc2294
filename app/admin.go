package app

import (
	"context"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
)

// Admin gives one command of the command line access to the accounts of a
// database, with or without a running server. A server on the same database
// applies the changes within a few seconds.
type Admin struct {
	*auth.Service
	db    *db.DB
	audit *activity.Audit
}

// OpenAdmin opens the database named by cfg. It fails with the errors of
// db.OpenExisting unless the database exists and has the schema of this binary.
func OpenAdmin(ctx context.Context, cfg Config) (*Admin, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s, err := auth.New(cfg.Auth, d, zap.NewNop(), nil)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return &Admin{Service: s, db: d, audit: activity.NewAudit(d)}, nil
}

// Close closes the database.
func (a *Admin) Close() error { return a.db.Close() }

// DefaultOrganization returns the only organization, or an error that names the
// flag to choose one with.
func (a *Admin) DefaultOrganization(ctx context.Context) (string, error) {
	all, err := a.Organizations(ctx)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", fmt.Errorf("there are %d organizations: choose one with --organization", len(all))
	}
	return all[0].ID, nil
}

// openDB opens the database named by cfg for a command. It creates and migrates
// nothing: only Start and Migrate do.
func openDB(ctx context.Context, cfg Config) (*db.DB, error) {
	return db.OpenExisting(ctx, cfg.Database, cfg.DataDir)
}

func closing(c io.Closer, err error) error {
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}
