package db

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// quickCheckTime bounds the check after the start, quickCheckTable that of
	// one table: while a table is read, the write-ahead log grows.
	quickCheckTime  = 10 * time.Minute
	quickCheckTable = 2 * time.Minute
)

// startCheck checks the structure of the SQLite file in the background, on a
// thread of low priority. Close ends it. On PostgreSQL it does nothing.
func (d *DB) startCheck() {
	if d.watch == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickCheckTime)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		lowerPriority()
		d.runCheck(ctx, d.file)
	}()
	d.stopCheck = func() { cancel(); <-done }
}

// runCheck checks the file and records the result.
func (d *DB) runCheck(ctx context.Context, path string) {
	log, begin := d.watch.log.Load(), time.Now()
	problems, err := quickCheck(ctx, path)
	took := zap.Duration("took", time.Since(begin).Round(time.Millisecond))
	switch {
	case len(problems) > 0:
		d.watch.found(strings.Join(problems[:min(len(problems), 3)], "; "))
	case err == nil:
		d.watch.checked(time.Now().UTC())
		log.Info("database checked", zap.String("file", filepath.Base(path)), took)
	case ctx.Err() == nil || ctx.Err() == context.DeadlineExceeded:
		log.Warn("database not checked completely: run guidon check", zap.Error(err), took)
	}
}

// quickCheck checks one table after the other, so that a checkpoint can run in
// between. It stops at the first table with problems.
func quickCheck(ctx context.Context, path string) (problems []string, err error) {
	pool, err := openSQLitePool(dsn(path, "deferred", readPragmas()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	pool.SetMaxOpenConns(1)
	tables, err := tableNames(ctx, pool)
	if isMalformed(err) {
		return []string{err.Error()}, nil
	}
	for _, name := range tables {
		tableCtx, cancel := context.WithTimeout(ctx, quickCheckTable)
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		problems, err = integrity(tableCtx, pool, "quick_check("+quoted+")")
		cancel()
		if len(problems) > 0 || err != nil {
			break
		}
	}
	return problems, err
}

func tableNames(ctx context.Context, pool *sql.DB) (names []string, err error) {
	rows, err := pool.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list the tables: %w", err)
		}
		names = append(names, name)
	}
	return append(names, "sqlite_schema"), rows.Err()
}
