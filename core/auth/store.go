package auth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// store is the SQL of accounts, composed by topic. Its methods use the
// transaction in their context.
type store struct {
	table
	projectStore
	keyStore
	organizationStore
	roleStore
	userStore
}

// table is what the topics have in common.
type table struct{ db *db.DB }

func (t table) insert(ctx context.Context, row any) *bun.InsertQuery {
	return t.db.Write(ctx).NewInsert().Model(row)
}

func newStore(d *db.DB) *store {
	t := table{d}
	users := userStore{t}
	return &store{
		table: t, projectStore: projectStore{t}, keyStore: keyStore{t},
		organizationStore: organizationStore{t}, roleStore: roleStore{t, users}, userStore: users,
	}
}

// write runs fn in a transaction that first increments the version of the
// accounts, which other processes poll. On PostgreSQL the row lock also makes
// concurrent changes wait for each other. committed runs after the commit.
func (s *store) write(ctx context.Context, fn func(ctx context.Context) error, committed func()) error {
	return db.Away(s.db.Tx(ctx, func(ctx context.Context) error {
		_, err := s.db.Write(ctx).NewUpdate().Table("accounts_version").Set("version = version + 1").Where("id = 1").Exec(ctx)
		if err != nil {
			return fmt.Errorf("increment the version of the accounts: %w", err)
		}
		if err := fn(ctx); err != nil {
			return err
		}
		s.db.AfterCommit(ctx, s.db.Wakes.Accounts.Publish)
		s.db.AfterCommit(ctx, committed)
		return nil
	}))
}

// snapshot returns all projects and valid keys, or old if the version is unchanged
// and old is younger than maxAge.
func (s *store) snapshot(ctx context.Context, old *snapshot, maxAge time.Duration) (*snapshot, error) {
	m := &snapshot{readAt: time.Now(), byKey: map[string]*Project{}, byID: map[int64]*Project{}}
	err := s.db.Read(ctx).NewSelect().Table("accounts_version").Column("version").Where("id = 1").Scan(ctx, &m.version)
	if err != nil {
		return nil, fmt.Errorf("read the version of the accounts: %w", err)
	}
	if old != nil && old.version == m.version && time.Since(old.readAt) < maxAge {
		return old, nil
	}
	var rows []struct {
		projectColumns
		Key *string
	}
	err = s.db.Read(ctx).NewSelect().TableExpr("projects AS p").
		ColumnExpr("p.id, p.organization_id, p.name, p.timezone, p.anonymize_ips, p.settings, p.created_at, k.key").
		Join("LEFT JOIN project_keys AS k ON k.project_id = p.id AND k.revoked_at IS NULL").
		Where("p.revoked_at IS NULL").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read projects and their keys: %w", err)
	}
	for _, r := range rows {
		p := m.byID[r.ID]
		if p == nil {
			fresh := r.project()
			p = &fresh
			m.byID[r.ID] = p
		}
		if r.Key != nil {
			m.byKey[*r.Key] = p
		}
	}
	m.byHash, err = s.validHashes(ctx, m.readAt)
	return m, err
}

// now returns the current time as the database keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// at returns the time of unix microseconds; 0 stands for NULL and the zero time.
func at(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// found turns "no rows" into NotFound and an unreachable database into
// Unavailable, and adds the operation to other errors.
func found(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fault.New(fault.NotFound, "not_found", "Not found.").Because(errors.New(doing))
	}
	return db.Away(fmt.Errorf("%s: %w", doing, err))
}

// touched turns a statement that changed no row into NotFound.
func touched(r sql.Result, err error, doing string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if n, err := r.RowsAffected(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	} else if n == 0 {
		return found(sql.ErrNoRows, doing)
	}
	return nil
}

// taken turns a violated unique constraint into the given failure.
func taken(err error, doing string, failure *fault.Error) error {
	switch {
	case err == nil:
		return nil
	case db.Duplicate(err):
		return failure.Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
