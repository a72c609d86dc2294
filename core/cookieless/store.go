package cookieless

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

type store struct{ db *db.DB }

// saltRow is a row of cookieless_salts.
type saltRow struct {
	bun.BaseModel `bun:"table:cookieless_salts,alias:s"`

	Day  string `bun:",pk"`
	Salt []byte
}

// renew adds the rows whose days have no salt, deletes the salts of days before
// them, and returns all salts by day. On a database that is only read it adds and deletes
// nothing.
func (s *store) renew(ctx context.Context, rows []saltRow) (map[string][]byte, error) {
	byDay := make(map[string][]byte, len(rows))
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		if s.db.ReadOnly {
			return s.read(ctx, byDay)
		}
		if _, err := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT (day) DO NOTHING").Returning("NULL").Exec(ctx); err != nil {
			return err
		}
		if _, err := s.db.Write(ctx).NewDelete().Model((*saltRow)(nil)).Where("day < ?", rows[0].Day).Exec(ctx); err != nil {
			return err
		}
		return s.read(ctx, byDay)
	})
	if err != nil {
		return nil, fmt.Errorf("renew the salts of visitors without cookies: %w", err)
	}
	return byDay, nil
}

// read adds the salts in the database to byDay.
func (s *store) read(ctx context.Context, byDay map[string][]byte) error {
	var kept []saltRow
	if err := s.db.Write(ctx).NewSelect().Model(&kept).Scan(ctx); err != nil {
		return err
	}
	for _, r := range kept {
		byDay[r.Day] = r.Salt
	}
	return nil
}
