package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/db/scan"
)

// busyWait is how long a connection waits for another process's write lock
// before it gives up.
const busyWait = 5 * time.Second

// Pages are read by pread rather than mapped: a mapped page that the disk can
// no longer deliver kills the process with SIGBUS, a failed read is an error.
func writePragmas() []string {
	return []string{
		fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()),
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
		"cache_size(-8192)",            // 8 MiB, filled as used
		"wal_autocheckpoint(8000)",     // 32 MiB between checkpoints: large batches write a page once
		"journal_size_limit(67108864)", // a large transaction gives its log back
		"temp_store(MEMORY)",
		"secure_delete(1)", // deleted rows leave no copy in free pages
	}
}

func readPragmas() []string { return readPragmasWith(2 << 10) }

// readPragmasWith has a cache of pages of the given size.
func readPragmasWith(cacheKB int) []string {
	return []string{
		fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()),
		fmt.Sprintf("cache_size(-%d)", cacheKB),
		"temp_store(MEMORY)",
		"query_only(1)",
	}
}

func openSQLite(ctx context.Context, cfg Config, path string, w *watch, readLog func(file string) (*LogDamage, error)) (*DB, error) {
	if sqliteDriver == nil {
		return nil, errNoSQLite // before a file is created
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find SQLite file %s: %w", path, err)
	}
	if err := createFile(abs); err != nil {
		return nil, fmt.Errorf("create SQLite file %s: %w", abs, err)
	}
	damage, err := readLog(abs)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", abs, err)
	}
	if damage != nil {
		w.logDamaged(damage)
	}
	write, err := openPool(ctx, w, "write", dsn(abs, "immediate", writePragmas()), 1, true)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", abs, err)
	}
	read, err := openPool(ctx, w, "read", dsn(abs, "deferred", readPragmas()), max(4, runtime.GOMAXPROCS(0)), false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open SQLite file %s for reading: %w", abs, err), write.Close())
	}
	lookup, err := openPool(ctx, w, "lookup", dsn(abs, "deferred", readPragmas()), max(2, runtime.GOMAXPROCS(0)), false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open SQLite file %s for lookups: %w", abs, err), read.Close(), write.Close())
	}
	d := &DB{
		lookup: bun.NewDB(lookup, sqlitedialect.New()),
		write:  bun.NewDB(write, sqlitedialect.New()),
		scans:  sqliteDriver.NewScanner(abs, busyWait),
		name:   "SQLite file " + abs, file: abs, watch: w, queries: w.queries,
	}
	d.readers[pools.Internal] = bun.NewDB(read, sqlitedialect.New())
	if err := d.addSQLiteReaders(cfg.withDefaults(), w); err != nil {
		return nil, errors.Join(err, lookup.Close(), read.Close(), write.Close())
	}
	return d, nil
}

// connectionsPerScan is how many connections a scan may use: a statement may run
// while the rows of another one are read.
const connectionsPerScan = 4

// scanConnections is how many connections the running scans use together: parts that
// share a place have two each.
func scanConnections(c scan.Config) int { return connectionsPerScan*c.Places + 2*(scan.MaxParts()-1) }

// addSQLiteReaders adds the pools of management and scans. They open connections
// when they are needed and close idle ones, whose caches take memory.
func (d *DB) addSQLiteReaders(cfg Config, w *watch) error {
	d.limiter = scan.New(cfg.Scans)
	for kind, size := range map[pools.Kind]int{
		pools.Management: cfg.ManagementConnections, pools.Scan: scanConnections(cfg.Scans),
	} {
		pool, err := newPool(w, kind.String(), dsn(d.file, "deferred", readPragmasWith(1<<10)), size, false)
		if err != nil {
			return fmt.Errorf("open SQLite file %s for %s: %w", d.file, kind, err)
		}
		pool.SetMaxIdleConns(min(size, 2))
		pool.SetConnMaxIdleTime(idleTime)
		d.readers[kind] = bun.NewDB(pool, sqlitedialect.New())
	}
	return nil
}

// idleTime is how long connections of management and scans stay open without use.
const idleTime = time.Minute

// truncateWait is how long TruncateLog waits for readers.
const truncateWait = 200 * time.Millisecond

// TruncateLog moves the write-ahead log of SQLite into the file and empties it, so
// that the log keeps no copy of deleted rows. It waits a moment for readers of old
// pages; if they go on, the result is false and the log stays until a later
// checkpoint. On PostgreSQL it does nothing.
func (d *DB) TruncateLog(ctx context.Context) (done bool, err error) {
	if d.Postgres() {
		return true, nil
	}
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("truncate the write-ahead log: %w", err)
	}
	defer func() { _ = conn.Close() }()
	setWait := func(wait time.Duration) error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()))
		return err
	}
	var busy, pages, moved int
	if err = setWait(truncateWait); err == nil {
		err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	}
	if isBusy(err) {
		busy, err = 1, nil
	}
	if err = errors.Join(err, setWait(busyWait)); err != nil {
		return false, fmt.Errorf("truncate the write-ahead log: %w", err)
	}
	return busy == 0, nil
}

// createFile makes the file before SQLite does, so that it, and the log files
// that copy its mode, belong to their owner alone.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn is a file: URI, in which no character of the path can be mistaken for a
// parameter.
func dsn(path, txlock string, pragmas []string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {txlock}, "_dqs": {"0"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// openPool opens a pool of at most size connections that stay open. name is that of
// its metrics; writes is set for the pool that writes.
func openPool(ctx context.Context, w *watch, name, dsn string, size int, writes bool) (*sql.DB, error) {
	pool, err := newPool(w, name, dsn, size, writes)
	if err != nil {
		return nil, err
	}
	// Two processes that create one file at the same moment can meet while one
	// of them turns the log on, which SQLite reports without waiting.
	if err := whileBusy(ctx, busyWait, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// newPool is openPool without a connection yet.
func newPool(w *watch, name, dsn string, size int, writes bool) (*sql.DB, error) {
	c, err := newSQLiteConnector(dsn)
	if err != nil {
		return nil, err
	}
	if w.wrap != nil {
		c = w.wrap(c)
	}
	pool := sql.OpenDB(&watchedConnector{c, w, timesOf(w.queries, name, writes), writes})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// whileBusy repeats try as long as it fails because another process holds the
// lock, for at most limit.
func whileBusy(ctx context.Context, limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func isBusy(err error) bool {
	code := sqliteCode(err) & 0xff
	return code == sqliteBusy || code == sqliteLocked
}
