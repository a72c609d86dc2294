package requestlog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// migrationLock is the advisory lock of processes that migrate.
const migrationLock = "113753977024366" // "guidon"

// unreachable is a shared log that no broker has, with a start timeout that ends at once.
func unreachable() requestlog.Config {
	cfg := requestlog.DefaultConfig()
	cfg.URL, cfg.StartTimeout = "kafka://127.0.0.1:1/guidon", 10*time.Millisecond
	return cfg
}

// openServer opens a database as a server does, which may not be ready afterwards.
func openServer(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.OpenServer(t.Context(), db.Config{URL: url}, "", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// The migration of the database may take longer than journal.start_timeout, which begins
// after it: the start fails for the log, or not at all.
func TestStartTimeoutDoesNotCountTheMigration(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	blocker, err := db.Open(t.Context(), db.Config{URL: url}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blocker.Close() })
	tx, err := blocker.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock("+migrationLock+")"); err != nil {
		t.Fatal(err)
	}

	// The server migrates, and waits there.
	d := openServer(t, url)
	const waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
	for n := 0; n == 0; time.Sleep(5 * time.Millisecond) {
		if err := blocker.Pool().QueryRow(t.Context(), waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := requestlog.Open(context.WithoutCancel(t.Context()), unreachable(), d, nil, zap.NewNop(), nil)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("during the migration: %v", err)
		ended <- err
	case <-time.After(20 * unreachable().StartTimeout):
	}

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "journal.url: connect to [127.0.0.1:1]") {
		t.Errorf("after the migration: %v", err)
	}
}

// The end of a start stops the wait for the database.
func TestStartThatWaitsForTheDatabaseCanBeStopped(t *testing.T) {
	t.Parallel()
	d := openServer(t, "postgres://guidon@127.0.0.1:1/none")
	cfg := unreachable()
	cfg.StartTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := requestlog.Open(ctx, cfg, d, nil, zap.NewNop(), nil); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v", err)
	}
}

// A database that does not answer ends the start, with the reason.
func TestStartNeedsTheDatabase(t *testing.T) {
	t.Parallel()
	d := openServer(t, "postgres://guidon@127.0.0.1:1/none")
	_, err := requestlog.Open(t.Context(), unreachable(), d, nil, zap.NewNop(), nil)
	if err == nil || !strings.Contains(err.Error(), "the database is not ready after 10ms") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}
