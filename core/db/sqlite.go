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
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
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
		"cache_size(-16384)",           // 16 MiB, filled as used
		"wal_autocheckpoint(8000)",     // 32 MiB between checkpoints: large batches write a page once
		"journal_size_limit(67108864)", // a large transaction gives its log back
		"temp_store(MEMORY)",
		"secure_delete(1)", // deleted rows leave no copy in free pages
	}
}

func readPragmas() []string {
	return []string{
		fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()),
		"cache_size(-8192)",
		"temp_store(MEMORY)",
		"query_only(1)",
	}
}

func openSQLite(ctx context.Context, path string, readLog func(file string) (*LogDamage, error)) (*DB, error) {
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
	w := newWatch()
	if damage != nil {
		w.logDamaged(damage)
	}
	write, err := openPool(ctx, w, dsn(abs, "immediate", writePragmas()), 1)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", abs, err)
	}
	read, err := openPool(ctx, w, dsn(abs, "deferred", readPragmas()), max(4, runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open SQLite file %s for reading: %w", abs, err), write.Close())
	}
	lookup, err := openPool(ctx, w, dsn(abs, "deferred", readPragmas()), max(2, runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open SQLite file %s for lookups: %w", abs, err), read.Close(), write.Close())
	}
	return &DB{
		read:   bun.NewDB(read, sqlitedialect.New()),
		lookup: bun.NewDB(lookup, sqlitedialect.New()),
		write:  bun.NewDB(write, sqlitedialect.New()),
		name:   "SQLite file " + abs, file: abs, watch: w,
	}, nil
}

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

// openPool opens a pool of at most size connections that stay open.
func openPool(ctx context.Context, w *watch, dsn string, size int) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(&watchedConnector{c, w})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	// Two processes that create one file at the same moment can meet while one
	// of them turns the log on, which SQLite reports without waiting.
	if err := whileBusy(ctx, busyWait, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
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
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// sqliteCode is the extended result code of a SQLite error, 0 for others.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}
