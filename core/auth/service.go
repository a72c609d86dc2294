package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// Service manages accounts and authenticates keys. It is composed by topic: the
// authenticator answers requests from memory, and a manager each changes
// projects with their keys, personal keys, organizations, roles and users. All
// methods may be called concurrently, also before Start and after Stop; Start
// only keeps the memory current.
type Service struct {
	*authenticator
	*projectManager
	*keyManager
	*organizationManager
	*roleManager
	*userManager

	// SecretKeys manages the secret keys of projects.
	SecretKeys *secretkey.Manager

	tx *transactor
}

// New returns the service on the accounts in d. log and reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, fmt.Errorf("register the metrics of auth: %w", err)
	}
	st := newStore(d)
	a := newAuthenticator(cfg, st, log.Named("auth"), m)
	tx := &transactor{store: st, refresh: a.refreshAfterChange}
	return &Service{
		authenticator:       a,
		projectManager:      &projectManager{tx},
		keyManager:          &keyManager{tx},
		organizationManager: &organizationManager{tx},
		roleManager:         &roleManager{tx},
		userManager:         &userManager{tx},
		SecretKeys:          secretkey.NewManager(d, tx.change),
		tx:                  tx,
	}, nil
}

// The managers change accounts, one topic each.
type (
	projectManager      struct{ *transactor }
	keyManager          struct{ *transactor }
	organizationManager struct{ *transactor }
	roleManager         struct{ *transactor }
	userManager         struct{ *transactor }
)

// transactor runs changes of accounts.
type transactor struct {
	store   *store
	refresh func()
}

// change runs fn in a transaction that increments the version of the accounts,
// and refreshes the snapshot after the commit.
func (t *transactor) change(ctx context.Context, fn func(ctx context.Context) error) error {
	return t.store.write(ctx, fn, t.refresh)
}

// requireOrganization fails if no organization has that id.
func (t *transactor) requireOrganization(ctx context.Context, id string) error {
	_, err := t.store.organization(ctx, id)
	return invalidIfMissing(err, "organization_id", "There is no such organization.")
}

// invalidIfMissing turns NotFound into a failure of the field attr.
func invalidIfMissing(err error, attr, detail string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Field(attr, "does_not_exist", detail).Because(err)
	}
	return err
}

// refreshAfterChange refreshes the snapshot after a change by this process.
func (a *authenticator) refreshAfterChange() {
	if _, err := a.refreshedSince(context.Background(), time.Now()); err != nil {
		a.log.Warn("key cache refresh failed after a change", zap.Error(err))
	}
}
