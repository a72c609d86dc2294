package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Versions keeps the versions of flags in the database. Its methods join the
// transaction in their context.
type Versions struct{ db *db.DB }

// NewVersions returns the versions in d.
func NewVersions(d *db.DB) *Versions { return &Versions{d} }

// versionRow is a row of feature_flag_versions.
type versionRow struct {
	bun.BaseModel `bun:"table:feature_flag_versions,alias:v"`

	FlagID    int64 `bun:",pk"`
	Version   int64 `bun:",pk"`
	State     string
	UserID    int64
	CreatedAt int64
}

// Add stores a version of a flag.
func (s *Versions) Add(ctx context.Context, flagID, version int64, v Version) error {
	row := &versionRow{FlagID: flagID, Version: version, State: string(v.State), UserID: v.By, CreatedAt: v.At.UnixMicro()}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("store version %d of flag %d: %w", version, flagID, err)
	}
	return nil
}

// Get returns a version of a flag, and whether it exists.
func (s *Versions) Get(ctx context.Context, flagID, version int64) (Version, bool, error) {
	var row versionRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("flag_id = ? AND version = ?", flagID, version).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Version{}, false, nil
	}
	if err != nil {
		return Version{}, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	return Version{State: []byte(row.State), By: row.UserID, At: time.UnixMicro(row.CreatedAt).UTC()}, true, nil
}
