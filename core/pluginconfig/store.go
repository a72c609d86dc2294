package pluginconfig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// record is a stored instance. Secrets is encrypted, "" for none. Times are unix
// microseconds.
type record struct {
	bun.BaseModel `bun:"table:plugin_configs,alias:p"`

	Name      string `bun:",pk"`
	Plugin    string
	Kind      string
	Config    string
	Secrets   string
	Version   int64
	CreatedAt int64
	UpdatedAt int64
	UpdatedBy string
}

// same reports whether two records are the same instance with the same config.
func (r record) same(o record) bool {
	return r.Name == o.Name && r.Version == o.Version && r.CreatedAt == o.CreatedAt && r.Secrets == o.Secrets
}

// store is the table of stored instances. Its methods use the transaction in their context.
type store struct{ db *db.DB }

// all returns the records in the order in which they were made.
func (st store) all(ctx context.Context) (out []record, err error) {
	if err := st.db.Read(ctx).NewSelect().Model(&out).Order("created_at", "name").Scan(ctx); err != nil {
		return nil, db.Away(fmt.Errorf("read the configuration of plugins: %w", err))
	}
	return out, nil
}

// find returns a record, or nil.
func (st store) find(ctx context.Context, name string) (*record, error) {
	r := &record{}
	err := st.db.Read(ctx).NewSelect().Model(r).Where("name = ?", name).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, db.Away(fmt.Errorf("read the configuration of a plugin: %w", err))
	}
	return r, nil
}

func (st store) count(ctx context.Context) (int64, error) {
	n, err := st.db.Read(ctx).NewSelect().Model((*record)(nil)).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count the configurations of plugins: %w", err)
	}
	return n, nil
}

// add adds a record. It is errChanged if another process has added it.
func (st store) add(ctx context.Context, r *record) error {
	done, err := st.db.Write(ctx).NewInsert().Model(r).On("CONFLICT (name) DO NOTHING").Returning("NULL").Exec(ctx)
	return oneRow(done, err)
}

// replace replaces the record of that version. It is errChanged if there is none.
func (st store) replace(ctx context.Context, r *record, version int64) error {
	done, err := st.db.Write(ctx).NewUpdate().Model(r).WherePK().Where("version = ?", version).Exec(ctx)
	return oneRow(done, err)
}

// remove removes the record of that version. It is errChanged if there is none.
func (st store) remove(ctx context.Context, name string, version int64) error {
	done, err := st.db.Write(ctx).NewDelete().Model((*record)(nil)).Where("name = ?", name).Where("version = ?", version).Exec(ctx)
	return oneRow(done, err)
}

func oneRow(done sql.Result, err error) error {
	if err != nil {
		return fmt.Errorf("write the configuration of a plugin: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errChanged
}

// Reencrypt encrypts the stored secrets with the first key. Servers may use the database.
func Reencrypt(ctx context.Context, d *db.DB, keys *sealed.Keyring) error {
	st := store{d}
	records, err := st.all(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Secrets == "" {
			continue
		}
		fresh, err := keys.Reseal(noProject, r.Secrets)
		if err != nil {
			return fmt.Errorf("secrets of the plugin %s: %w", r.Name, err)
		}
		_, err = d.Write(ctx).NewUpdate().Model((*record)(nil)).Set("secrets = ?", fresh).Where("name = ?", r.Name).Where("secrets = ?", r.Secrets).Exec(ctx)
		if err != nil {
			return fmt.Errorf("secrets of the plugin %s: %w", r.Name, err)
		}
	}
	return nil
}

// wake wakes the other nodes after the commit.
func (st store) wake(ctx context.Context) { st.db.AfterCommit(ctx, st.db.Wakes.Plugins.Publish) }
