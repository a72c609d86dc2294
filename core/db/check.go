package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/guidonhq/guidon/core/db/logcheck"
)

// maxProblems bounds the problems that a check lists.
const maxProblems = 100

// CheckFile returns the problems that SQLite finds in the structure of the file
// that cfg names: malformed pages, indexes that do not fit their table, and
// compressed events that cannot be read. It
// reads the whole file and changes nothing; it may run beside a server. It returns
// none for PostgreSQL. SQLite has no checksums of pages: a changed bit inside a
// value is not found.
func CheckFile(ctx context.Context, cfg Config, dataDir string) (problems []string, err error) {
	t, err := parseURL(cfg.URL, dataDir)
	if err != nil || t.postgres != "" {
		return nil, err
	}
	if _, err := os.Stat(t.file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database at %s", t.file)
	}
	err = logcheck.Check(t.file)
	if damaged, ok := errors.AsType[*logcheck.DamagedError](err); ok {
		return []string{damaged.Error()}, nil // to read the file now would discard commits
	}
	if err != nil {
		return nil, err
	}
	pool, err := openSQLitePool(dsn(t.file, "deferred", readPragmas()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	problems, err = integrity(ctx, pool, fmt.Sprintf("integrity_check(%d)", maxProblems))
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	return sqliteDriver.CheckEvents(ctx, pool, maxProblems)
}

// integrity runs one of SQLite's checks, a pragma with its argument.
func integrity(ctx context.Context, pool *sql.DB, pragma string) (problems []string, err error) {
	rows, err := pool.QueryContext(ctx, "PRAGMA "+pragma)
	if isMalformed(err) {
		return []string{err.Error()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, fmt.Errorf("check the database: %w", err)
		}
		if line != "ok" {
			problems = append(problems, line)
		}
	}
	if err := rows.Err(); isMalformed(err) {
		return append(problems, err.Error()), nil
	} else if err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	return problems, nil
}

func isMalformed(err error) bool {
	code := sqliteCode(err) & 0xff
	return code == sqliteCorrupt || code == sqliteNotDB
}
