package persons_test

import (
	"context"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// waiting waits until n statements that begin with text wait for a lock.
func waiting(t *testing.T, d *db.DB, n int, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := waitingNow(t, d, text)
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d statements %q wait for a lock, want %d", got, text, n)
		}
	}
}

func waitingNow(t *testing.T, d *db.DB, text string) (n int) {
	t.Helper()
	err := d.Read(t.Context()).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND starts_with(ltrim(query), ?)`, text).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitsOrEnds waits until a statement waits for a lock, or done has a result, which it leaves
// there. It returns whether one waits.
func waitsOrEnds(t *testing.T, d *db.DB, done chan error) bool {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if waitingNow(t, d, "SELECT") > 0 {
			return true
		}
		if len(done) > 0 {
			return false
		}
	}
	t.Fatal("no statement waits for a lock, and none ends")
	return false
}

// lockRow locks a person in a transaction.
func lockRow(t *testing.T, tx bun.Tx, id int64) {
	t.Helper()
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM persons WHERE id = ? FOR UPDATE", id); err != nil {
		t.Errorf("lock person %d: %v", id, err)
	}
}

// personOf returns the number of the person of a distinct id.
func personOf(t *testing.T, s *persons.Service, id string) int64 {
	t.Helper()
	p, ok, err := s.ByDistinctID(t.Context(), 1, id)
	if err != nil || !ok {
		t.Fatalf("person of %s: %v", id, err)
	}
	return p.ID
}

// A batch that was waiting for a person, which a merge moved to one with a lower id, does
// not wait for that one while it has a higher one.
func TestMergeBeforeTheLockIsNoDeadlock(t *testing.T) {
	for range 20 {
		if mergeBeforeTheLock(t) {
			return
		}
	}
	t.Error("the batch never waited for the low person")
}

// mergeBeforeTheLock returns false if the batch had the low person before the transaction
// that waited longer for it, so that nothing was left to wait for.
func mergeBeforeTheLock(t *testing.T) bool {
	t.Helper()
	d := dbtest.Postgres(t)
	s := service(t, d)
	process(t, s, evs(`$set first {"$set":{"a":1}}`, `$set low {"$set":{"a":2}}`, `$set middle {"$set":{"a":1}}`, `$set high {"$set":{"a":1}}`))
	first, low, high := personOf(t, s, "first"), personOf(t, s, "low"), personOf(t, s, "high")

	merging, commit := make(chan struct{}), make(chan struct{})
	merger := service(t, d)
	merger.OnMerge(func(context.Context, int64, []int64, []int64) error {
		close(merging)
		<-commit
		return nil
	})
	other, blocked := begin(t, d), begin(t, d)
	// The first attempt of the batch changes nothing of the middle person, so it does not
	// lock it, and fails on the version of the first person.
	if _, err := blocked.ExecContext(t.Context(), "UPDATE persons SET version = version + 1 WHERE id = ?", first); err != nil {
		t.Fatal(err)
	}
	batched, merged := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := service(t, d).Process(t.Context(), evs(`$set first {"$set":{"b":2}}`, `$set middle {"$set":{"a":1}}`, `$set high {"$set":{"b":2}}`))
		batched <- err
	}()
	waiting(t, d, 1, "SELECT 1 FROM unnest")
	go func() {
		_, err := merger.Process(t.Context(), evs(`$merge_dangerously low {"alias":"middle"}`))
		merged <- err
	}()
	<-merging
	check(t, blocked.Commit())
	waiting(t, d, 1, "SELECT l.id") // the second attempt, for the person that is merged
	lowLocked := make(chan struct{})
	go func() {
		defer close(lowLocked)
		lockRow(t, other, low)
	}()
	waiting(t, d, 1, "SELECT 1 FROM persons")
	close(commit)
	check(t, <-merged)
	<-lowLocked
	waited := waitsOrEnds(t, d, batched) // the batch, for the low person
	lockRow(t, other, high)
	check(t, other.Commit())
	check(t, <-batched)
	if got := people(t, service(t, d)); got != "first {\"a\":1,\"b\":2}\nhigh {\"a\":1,\"b\":2}\nlow+middle* {\"a\":1}" {
		t.Errorf("persons:\n%s", got)
	}
	return waited
}

// The removal of distinct ids of two persons has both before it writes what batches of
// events write after they have locked persons.
func TestRemovalOfTwoPersonsIsNoDeadlock(t *testing.T) {
	d := dbtest.Postgres(t)
	s := service(t, d)
	process(t, s, evs(`$set one {"$set":{"a":1}}`, `$set two {"$set":{"a":1}}`))
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE counter (n INT); INSERT INTO counter VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	const count = "UPDATE counter SET n = n + 1"
	s.OnDelete(func(ctx context.Context, _, _ int64) error {
		_, err := d.Write(ctx).ExecContext(ctx, count)
		return err
	})
	batch := begin(t, d)
	lockRow(t, batch, personOf(t, s, "two"))
	removed := make(chan error, 1)
	go func() {
		removed <- s.Remove(t.Context(), &persons.Removal{ProjectID: 1, PersonID: personOf(t, s, "one"), DistinctIDs: []string{"one", "two"}})
	}()
	waiting(t, d, 1, `SELECT "id" FROM "persons"`)
	if _, err := batch.ExecContext(t.Context(), count); err != nil {
		t.Errorf("a batch that has locked its person: %v", err)
	}
	check(t, batch.Commit())
	check(t, <-removed)
	if got := people(t, s); got != "" {
		t.Errorf("persons are left: %s", got)
	}
}

func begin(t *testing.T, d *db.DB) bun.Tx {
	t.Helper()
	tx, err := d.Write(t.Context()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
