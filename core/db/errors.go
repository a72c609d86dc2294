package db

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Duplicate reports whether err is a violation of a unique constraint or a primary
// key.
func Duplicate(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23505"
	}
	code := sqliteCode(err)
	return code == sqliteUnique || code == sqlitePrimaryKey || code == sqliteRowID
}

// BrokenReference reports whether err is a violation of a foreign key: the
// referenced row is missing, or the row is still referenced.
func BrokenReference(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23503"
	}
	return sqliteCode(err) == sqliteForeignKey
}

// Retryable reports whether the transaction that failed with err may succeed on
// retry: a deadlock or a serialization failure on PostgreSQL, a lock held too long
// by another process on SQLite.
func Retryable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "40001" || e.Code == "40P01"
	}
	return isBusy(err)
}

// ExplainStart returns err of a start, with what to do when it comes from SQLite, from
// a missing row, or from a value of another type: the file may be damaged. So has an error
// about tables that something else made. Other errors, and nil, return as they are.
func ExplainStart(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P07" {
		return fmt.Errorf("%w (the database contains tables of another application: name an empty one in database.url)", err)
	} else if err == nil {
		return nil
	}
	damaged := sqliteCode(err) != 0 || errors.Is(err, sql.ErrNoRows) ||
		strings.Contains(err.Error(), "sql: Scan error") // database/sql has no type for it
	if !damaged || strings.Contains(err.Error(), whatToDo) {
		return err
	}
	return fmt.Errorf("%w (if the file may be damaged, %s)", err, whatToDo)
}
