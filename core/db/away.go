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
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/guidonhq/guidon/core/fault"
)

// Away turns an error that says that the store cannot be reached, cannot write
// or cannot answer in time into Unavailable: the caller has done nothing wrong
// and may come back. Any other error, and one that has a kind, comes back as it is.
func Away(err error) error {
	if err == nil || fault.From(err) != nil || !isAway(err) {
		return err
	}
	return fault.New(fault.Unavailable, "server_error", "The database cannot be used right now. Try again later.").
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

// refusedByServer reports whether PostgreSQL itself said that it cannot: lost
// connections, too few resources, shutting down, or read only.
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

// refusedByDisk reports whether SQLite said that its file cannot be used now:
// read only, an I/O error, a full disk, a file that cannot be opened.
func refusedByDisk(err error) bool {
	switch sqliteCode(err) & 0xff { // the rest is detail
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}
