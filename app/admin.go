package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
)

// Admin gives one command of the command line access to the accounts of a
// database, with or without a running server. A server on the same database
// applies the changes within a few seconds.
type Admin struct {
	*auth.Service
	db *db.DB
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
	return &Admin{Service: s, db: d}, nil
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

// NewProject creates a project with a key and returns its id and that key.
func (a *Admin) NewProject(ctx context.Context, organization, name, timezone string) (int64, string, error) {
	p, key, err := a.CreateProject(ctx, auth.NewProject{OrganizationID: organization, Name: name, Timezone: timezone})
	return p.ID, key.Key, err
}

// NewUser creates a user and returns the id. level is member, admin or owner;
// operator also grants the right to administer the server.
func (a *Admin) NewUser(ctx context.Context, organization, email, name, level string, operator bool) (int64, error) {
	levels := map[string]int{"member": auth.LevelMember, "admin": auth.LevelAdmin, "owner": auth.LevelOwner}
	u, err := a.CreateUser(ctx, auth.NewUser{Email: email, FirstName: name, OrganizationID: organization, Level: levels[level], Operator: operator})
	return u.ID, err
}

// NewProjectKey creates a project key, or stores the given one, and returns it.
func (a *Admin) NewProjectKey(ctx context.Context, project int64, label, key string) (string, error) {
	k, err := a.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: project, Label: label, Key: key})
	return k.Key, err
}

// NewPersonalKey creates a personal key and returns its secret, which is not
// stored. A zero expires makes a key without an end.
func (a *Admin) NewPersonalKey(ctx context.Context, user int64, label string, scopes []string, expires time.Time) (string, error) {
	_, secret, err := a.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: user, Label: label, Scopes: scopes, ExpiresAt: expires})
	return secret, err
}
