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

// store is the SQL of the room. Its methods work in the transaction of their
// context when there is one.
type store struct{ db *db.DB }

// write runs fn in a transaction that first moves the version of the accounts,
// so that other processes learn of the change with it, and on PostgreSQL too
// one change of the accounts waits for the other. then runs after the commit.
func (s *store) write(ctx context.Context, fn func(ctx context.Context) error, then func()) error {
	return db.Away(s.db.Tx(ctx, func(ctx context.Context) error {
		_, err := s.db.Write(ctx).NewRaw("UPDATE accounts_version SET version = version + 1 WHERE id = 1").Exec(ctx)
		if err != nil {
			return fmt.Errorf("move the version of the accounts: %w", err)
		}
		if err := fn(ctx); err != nil {
			return err
		}
		s.db.AfterCommit(ctx, then)
		return nil
	}))
}

// memory returns old when the version did not move and old is younger than
// maxAge, else all projects and keys.
func (s *store) memory(ctx context.Context, old *memory, maxAge time.Duration) (*memory, error) {
	m := &memory{readAt: time.Now(), byKey: map[string]*Project{}, byID: map[int64]*Project{}}
	err := s.db.Read(ctx).NewRaw("SELECT version FROM accounts_version WHERE id = 1").Scan(ctx, &m.version)
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
	err = s.db.Read(ctx).NewRaw(`
		SELECT p.id, p.organization_id, p.name, p.timezone, p.anonymize_ips, p.settings, p.created_at, k.key
		FROM projects p LEFT JOIN project_keys k ON k.project_id = p.id AND k.revoked_at IS NULL
		WHERE p.revoked_at IS NULL`).Scan(ctx, &rows)
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
	return m, nil
}

// now is the present as the database keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// at is the time of unix microseconds; 0, which stands for NULL, is the zero time.
func at(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// found turns "no rows" into NotFound, a store that is away into Unavailable,
// and says what was being done otherwise.
func found(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fault.New(fault.NotFound, "not_found", "Not found.").Because(errors.New(doing))
	}
	return db.Away(fmt.Errorf("%s: %w", doing, err))
}

// touched turns "changed no row" into NotFound.
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

// taken turns a broken unique constraint into the given failure.
func taken(err error, doing string, failure *fault.Error) error {
	switch {
	case err == nil:
		return nil
	case db.Duplicate(err):
		return failure.Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// insert writes row and, when it has one, reads its generated id.
func (s *store) insert(ctx context.Context, row any) *bun.InsertQuery {
	return s.db.Write(ctx).NewInsert().Model(row)
}
