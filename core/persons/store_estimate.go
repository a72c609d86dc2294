package persons

import (
	"context"
	"fmt"
)

// estimateBelow is the number of rows below which PostgreSQL counts them.
const estimateBelow = 100_000

// EstimateCount returns the number of persons of all projects: on PostgreSQL the
// estimate of the planner for a large table. It reads an index of the whole table on
// SQLite, which takes about 50 ms for a million persons.
func (s *Service) EstimateCount(ctx context.Context) (int64, error) {
	var n int64
	if s.db.Postgres() {
		err := s.db.Read(ctx).NewSelect().TableExpr("pg_class").ColumnExpr("reltuples::bigint").Where("oid = 'persons'::regclass").Scan(ctx, &n)
		if err != nil || n >= estimateBelow {
			return n, wrapEstimate(err)
		}
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("persons").ColumnExpr("count(*)").Scan(ctx, &n)
	return n, wrapEstimate(err)
}

func wrapEstimate(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("count persons: %w", err)
}
