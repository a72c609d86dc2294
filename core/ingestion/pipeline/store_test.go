package pipeline

import (
	"context"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A process that stops in the middle of a transaction must not keep the row numbers
// from all nodes.
func TestRowNumbersAreNotHeldByAStoppedProcess(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := &store{d}
	timeout := func(ctx context.Context) (v string) {
		if err := d.Read(ctx).QueryRowContext(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := timeout(t.Context())
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if err := s.lockRowNumbers(ctx); err != nil {
			return err
		}
		if got := timeout(ctx); got != "10s" {
			t.Errorf("the session may be idle in the transaction for %s", got)
		}
		var free bool
		row := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT pg_try_advisory_xact_lock(?)", int64(rowNumbersLock))
		if err := row.Scan(&free); err != nil || free {
			t.Errorf("another transaction gets the lock, %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := timeout(t.Context()); got != before {
		t.Errorf("afterwards %s, before %s", got, before)
	}
}
