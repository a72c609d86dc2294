package erasure

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
)

// scanRow is a row of erasure_scans.
type scanRow struct {
	bun.BaseModel `bun:"table:erasure_scans"`

	Journal string `bun:",pk"`
	Seq     int64
	Digest  int64
}

// scanPosition returns the position of a partition; zero without one.
func (s *store) scanPosition(ctx context.Context, journal string) (position, error) {
	var r scanRow
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("journal = ?", journal).Scan(ctx)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return position{}, fmt.Errorf("read the position of the scan for erasures: %w", err)
	}
	return position{uint64(r.Seq), uint64(r.Digest)}, nil
}

// moveScanPosition replaces the position of a partition, if it is still was.
func (s *store) moveScanPosition(ctx context.Context, journal string, was, to position) (bool, error) {
	row := &scanRow{Journal: journal, Seq: int64(to.seq), Digest: int64(to.digest)}
	var result sql.Result
	var err error
	if was == (position{}) {
		result, err = s.db.Write(ctx).NewInsert().Model(row).On("CONFLICT (journal) DO NOTHING").Returning("NULL").Exec(ctx)
	} else {
		result, err = s.db.Write(ctx).NewUpdate().Model(row).Column("seq", "digest").WherePK().
			Where("seq = ? AND digest = ?", int64(was.seq), int64(was.digest)).Exec(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("write the position of the scan for erasures: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}
