package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/logcheck"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

// firstWait is how long OpenServer waits for a database that does not answer
// before it returns with the database not ready.
const firstWait = 5 * time.Second

var errNotReady = fault.New(fault.Unavailable, CodeUnavailable,
	"The server waits for its database. Try again later.").After(2 * time.Second)

// waiting is the state of a PostgreSQL database that a server has opened and
// that may not be reachable or migrated yet.
type waiting struct {
	ready chan struct{} // closed when the database has the newest schema
	cause atomic.Pointer[error]

	// migrating is true while the database has answered and is being migrated, or waits for
	// another process that migrates it.
	migrating atomic.Bool

	began time.Time                 // of the waiting
	lost  atomic.Pointer[time.Time] // since when a database that was ready does not answer
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// migratingKey marks the context of the migration, which passes the gate.
type migratingKey struct{}

// admit refuses connections until the database is ready, except to migrate it.
func (w *waiting) admit(ctx context.Context) error {
	select {
	case <-w.ready:
		return nil
	default:
	}
	if ctx.Value(migratingKey{}) != nil {
		return nil
	}
	return errNotReady
}

// OpenServer opens and migrates the database for a server. On SQLite it is Open
// and Migrate, and it corrects a damaged write-ahead log.
//
// PostgreSQL may be away: after a few seconds, or at once when the
// server refuses the connection, OpenServer returns a handle on which every
// query fails with Unavailable until the database is reachable and migrated,
// which is tried with growing pauses. It fails at once with an error that
// waiting does not cure: a wrong password or database name, a newer schema.
func OpenServer(ctx context.Context, cfg Config, dataDir string, log *zap.Logger) (*DB, error) {
	t, err := parseURL(cfg.URL, dataDir)
	if err != nil {
		return nil, err
	}
	if t.postgres != "" {
		return openWaiting(ctx, cfg, t.postgres, log)
	}
	d, err := open(ctx, cfg, dataDir, logcheck.Repair)
	if err != nil {
		return nil, err
	}
	d.watch.logTo(log.Named("db"), d.name)
	if err := d.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate the database: %w", err), d.Close())
	}
	return d, nil
}

func openWaiting(ctx context.Context, cfg Config, raw string, log *zap.Logger) (*DB, error) {
	w := &waiting{ready: make(chan struct{}), began: time.Now().UTC()}
	d, err := newPostgres(ctx, cfg, raw, w)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithValue(context.Background(), migratingKey{}, true))
	w.stop = stop
	first := make(chan error, 1)
	w.done.Go(func() { d.prepare(running, log.Named("db"), first) })
	select {
	case err = <-first:
	case <-time.After(firstWait):
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && (!isAway(err) || refusedForGood(err) || ctx.Err() != nil) {
		return nil, errors.Join(fmt.Errorf("migrate the database: %w", err), d.Close())
	}
	return d, nil
}

// prepare migrates until it succeeds, and then watches the connection until ctx
// ends. It sends the result of the first attempt to first, and logs each change of
// state once.
func (d *DB) prepare(ctx context.Context, log *zap.Logger, first chan<- error) {
	backoff := retry.Backoff{Min: 250 * time.Millisecond, Max: 5 * time.Second}
	prepare := d.Migrate
	if d.ReadOnly {
		prepare = d.CheckSchema
	}
	for attempt := 0; ; attempt++ {
		err := prepare(ctx)
		if err == nil {
			close(d.waiting.ready)
			if attempt > 0 {
				log.Info("database ready", zap.Stringer("database", d), zap.Duration("waited", time.Since(d.waiting.began).Round(time.Millisecond)))
			}
		} else if last := d.waiting.cause.Swap(&err); ctx.Err() == nil && (last == nil || isNews(err, *last)) {
			log.Warn("database away: waiting for it", zap.Stringer("database", d), zap.Error(err))
		}
		select {
		case first <- err:
		default:
		}
		if err == nil {
			d.watchConnection(ctx, log)
			return
		}
		if !backoff.Sleep(ctx) {
			return
		}
	}
}

// isNews reports an error that waiting does not cure, unless it was the last one.
func isNews(err, last error) bool {
	return (!isAway(err) || refusedForGood(err)) && err.Error() != last.Error()
}

// refusedForGood reports a wrong password, user or database name, which pgx
// reports as a failed connection.
func refusedForGood(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "28") || strings.HasPrefix(e.Code, "3D"))
}

// Ready returns a channel that is closed once the database is reachable and has
// the schema of this binary. It stays closed when the database is lost later.
func (d *DB) Ready() <-chan struct{} {
	if d.waiting == nil {
		return always
	}
	return d.waiting.ready
}

var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// IsReady reports whether Ready is closed.
func (d *DB) IsReady() bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}

// WaitReady waits until the database is ready. It returns false if ctx ends
// first.
func (d *DB) WaitReady(ctx context.Context) bool {
	select {
	case <-d.Ready():
		return true
	case <-ctx.Done():
		return false
	}
}

// WaitMigrated waits until the database is ready. A migration may take as long as it
// needs: limit bounds the time without one, in which the database does not answer or its
// migration has failed. The error is that of ctx, or it names why the database is not ready.
func (d *DB) WaitMigrated(ctx context.Context, limit time.Duration) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for away := time.Now(); ; {
		select {
		case <-d.Ready():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}

		// A migration that fails for another reason than a lost connection is tried again,
		// too, but is not waited for without an end.
		cause := d.waiting.cause.Load()
		if d.waiting.migrating.Load() && (cause == nil || isAway(*cause) && !refusedForGood(*cause)) {
			away = time.Now()
		}

		switch {
		case time.Since(away) < limit:
		case cause == nil:
			return fmt.Errorf("the database is not ready after %s: it does not answer", limit)
		default:
			return fmt.Errorf("the database is not ready after %s: %w", limit, *cause)
		}
	}
}

// stopWaiting ends the attempts to prepare the database.
func (d *DB) stopWaiting() {
	if d.waiting != nil && d.waiting.stop != nil {
		d.waiting.stop()
		d.waiting.done.Wait()
	}
}

// beforeConnect and prepareConn apply the gate to new and to kept connections.
func (w *waiting) beforeConnect(ctx context.Context, _ *pgx.ConnConfig) error { return w.admit(ctx) }

func (w *waiting) prepareConn(ctx context.Context, _ *pgx.Conn) (bool, error) {
	return true, w.admit(ctx)
}
