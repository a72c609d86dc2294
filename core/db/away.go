package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/core/fault"
)

// CodeUnavailable is the code of the error for a database that cannot be used, at
// a start and later.
const CodeUnavailable = "database_unavailable"

// Away makes an Unavailable fault of an error that means that the database cannot
// be reached, cannot write or cannot answer in time: the caller may retry. It
// returns other errors, and errors that have a kind, unchanged.
func Away(err error) error {
	if err == nil || fault.From(err) != nil || !isAway(err) {
		return err
	}
	return fault.New(fault.Unavailable, CodeUnavailable, "The database cannot be used right now. Try again later.").
		After(time.Second).Because(err)
}

func isAway(err error) bool {
	for _, lost := range [...]error{context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, lost) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return Retryable(err) || pgconn.SafeToRetry(err) || refusedByServer(err) || refusedByDisk(err)
}

// refusedByServer reports whether PostgreSQL refused: lost connections, too few
// resources, shutting down, or read only.
func refusedByServer(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	for _, class := range [...]string{"08", "53", "57P", "58", "25006"} {
		if strings.HasPrefix(e.Code, class) {
			return true
		}
	}
	return false
}

// refusedByDisk reports whether SQLite cannot use its file: read only, an I/O
// error, a full disk, a file that cannot be opened.
func refusedByDisk(err error) bool {
	switch sqliteCode(err) & 0xff { // the rest is detail
	case sqliteReadOnly, sqliteIOError, sqliteFull, sqliteCantOpen:
		return true
	}
	return false
}
