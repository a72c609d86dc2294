package pglog

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestRowsAreReadByTheirKey looks at the plan of a read from a table of 20,000 rows that has
// no statistics yet: it reads the rows in the order of the key, and sorts none.
func TestRowsAreReadByTheirKey(t *testing.T) {
	t.Parallel()
	s, err := openStore(t.Context(), dbtest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO log_batches (slot, part, last, records, stored_at, content)
		SELECT 0, 0, n, 1, now(), decode(repeat('00', 1000), 'hex') FROM generate_series(1, 20000) AS n`); err != nil {
		t.Fatal(err)
	}
	found, err := s.pool.Query(t.Context(), "EXPLAIN "+selectRows, int32(0), 0, int64(1), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "Index Scan using log_batches_0_pkey") || strings.Contains(plan, "Sort") {
		t.Errorf("the plan is\n%s", plan)
	}
}
