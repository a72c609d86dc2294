// Package commandline has what commands need that work on a database without a running
// server: the accounts, whose changes are entries of the activity log, and the identity of
// the command line in a server that runs within the process of a command.
package commandline

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
)

// Accounts gives one command of the command line access to the accounts of a
// database, with or without a running server. A server on the same database
// applies the changes within a few seconds.
type Accounts struct {
	*auth.Service
	db    *db.DB
	audit *activity.Audit
}

// Open returns the accounts in d, which Close closes. It closes d if it fails.
func Open(d *db.DB, cfg auth.Config) (*Accounts, error) {
	s, err := auth.New(cfg, d, zap.NewNop(), nil)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return &Accounts{Service: s, db: d, audit: activity.NewAudit(d)}, nil
}

// Close seals the entries of the changes and closes the database. A server seals them
// later if that fails.
func (a *Accounts) Close() error {
	_ = chain.New(a.db).SealAll(context.Background())
	return a.db.Close()
}

// DefaultOrganization returns the only organization, or an error that names the
// flag to choose one with.
func (a *Accounts) DefaultOrganization(ctx context.Context) (string, error) {
	all, err := a.Organizations(ctx)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", fmt.Errorf("there are %d organizations: choose one with --organization", len(all))
	}
	return all[0].ID, nil
}
