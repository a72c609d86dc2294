package flags

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/document"
)

// versionRow is a row of feature_flag_versions.
type versionRow struct {
	bun.BaseModel `bun:"table:feature_flag_versions,alias:v"`

	FlagID    int64 `bun:",pk"`
	Version   int64 `bun:",pk"`
	State     string
	UserID    int64
	CreatedAt int64
}

// addVersion stores the fields of f as a version.
func (s versionStore) addVersion(ctx context.Context, f *Flag) error {
	row := &versionRow{FlagID: f.ID, Version: f.Version, State: string(document.Encode(f.Fields)), UserID: f.UpdatedBy, CreatedAt: f.UpdatedAt.UnixMicro()}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).Exec(ctx); err != nil {
		return fmt.Errorf("store version %d of flag %d: %w", f.Version, f.ID, err)
	}
	return nil
}

// versionOrigin returns who made a version, and when.
func (s versionStore) versionOrigin(ctx context.Context, flagID, version int64) (by int64, at time.Time, err error) {
	var row versionRow
	err = s.db.Read(ctx).NewSelect().Model(&row).Column("user_id", "created_at").Where("flag_id = ? AND version = ?", flagID, version).Scan(ctx)
	if err != nil {
		return 0, at, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	return row.UserID, time.UnixMicro(row.CreatedAt).UTC(), nil
}

// version returns the fields of a version, and whether the version exists.
func (s versionStore) version(ctx context.Context, flagID, version int64) (Fields, bool, error) {
	var row versionRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("flag_id = ? AND version = ?", flagID, version).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Fields{}, false, nil
	}
	if err != nil {
		return Fields{}, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	var fields Fields
	if err := json.Unmarshal([]byte(row.State), &fields); err != nil {
		return Fields{}, false, fmt.Errorf("read version %d of flag %d: %w", version, flagID, err)
	}
	fields.setDefaults()
	return fields, true, nil
}
