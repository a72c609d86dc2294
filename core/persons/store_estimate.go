package persons

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
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

// EstimateProject returns about how many persons a project has: on PostgreSQL the estimate of
// the planner for many, because counting a million takes 0.4 s, and on SQLite a number that is
// at most a minute old.
func (s *Service) EstimateProject(ctx context.Context, projectID int64) (int, error) {
	if s.db.Postgres() {
		n, err := s.store.planned(ctx, projectID)
		if err != nil || n >= estimateBelow {
			return n, wrapEstimate(err)
		}
	}
	if known, ok := s.counts.Load(projectID); ok && time.Since(known.(counted).at) < countAge {
		return known.(counted).n, nil
	}
	n, err := s.Count(ctx, projectID)
	if err == nil && n >= estimateBelow {
		s.counts.Store(projectID, counted{n, time.Now()})
	}
	return n, err
}

// countAge is for how long SQLite does not count the persons of a large project again.
const countAge = time.Minute

// counted is how many persons a project had.
type counted struct {
	n  int
	at time.Time
}

// planned returns how many persons of a project the planner of PostgreSQL expects.
func (s *store) planned(ctx context.Context, projectID int64) (int, error) {
	var text string
	if err := s.db.Read(ctx).NewRaw("EXPLAIN (FORMAT JSON) SELECT 1 FROM persons WHERE project_id = ?", projectID).Scan(ctx, &text); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan struct {
			Rows int `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) == 0 {
		return 0, fmt.Errorf("read the plan %.100q: %w", text, err)
	}
	return plans[0].Plan.Rows, nil
}

func wrapEstimate(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("count persons: %w", err)
}
