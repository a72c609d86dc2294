package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

func newPool(t *testing.T) *scanPool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scan.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := newScanPool(file, time.Second)
	t.Cleanup(p.Close)
	return p
}

// A canceled scan can leave its transaction open, because the interrupt ended the
// ROLLBACK. Later scans do not get its connection, which cannot begin another one.
func TestOpenTransactionsAreNotKept(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c, err := p.take()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.exec("BEGIN"); err != nil {
		t.Fatal(err)
	}
	p.release(c)
	for range 2 {
		if err := p.Scan(t.Context(), []string{"SELECT 1"}, func() {}, func(int, db.SQLiteRow) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

// A panic of the function ends the transaction and gives the connection back.
func TestPanicsGiveTheConnectionBack(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	func() {
		defer func() { _ = recover() }()
		_ = p.Scan(t.Context(), []string{"SELECT 1"}, func() {}, func(int, db.SQLiteRow) error { panic("broken") })
	}()
	if len(p.idle) != 1 {
		t.Fatalf("%d connections are idle", len(p.idle))
	}
	if err := p.Scan(t.Context(), []string{"SELECT 1"}, func() {}, func(int, db.SQLiteRow) error { return nil }); err != nil {
		t.Error(err)
	}
}

// SQLite calls the pause of a scan while it works on one row.
func TestScansPauseWithinAStatement(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	calls := 0
	query := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000) SELECT count(*) FROM n"
	err := p.Scan(t.Context(), []string{query}, func() { calls++ }, func(_ int, r db.SQLiteRow) error {
		if r.Int(0) != 100_000 {
			t.Errorf("counted %d", r.Int(0))
		}
		return nil
	})
	if err != nil || calls < 100 {
		t.Errorf("%d pauses, %v", calls, err)
	}
	before := calls
	if err := p.Scan(t.Context(), []string{query}, func() {}, func(int, db.SQLiteRow) error { return nil }); err != nil || calls != before {
		t.Errorf("a pause of an earlier scan is called: %v", err)
	}
}
