// Package sqlite is the SQLite library (modernc.org/sqlite) behind core/db.
//
// The library is large: it takes a test binary several seconds to link. core/db therefore
// does not import it, and packages that only hold a *db.DB do not link it. This package
// registers itself with core/db when it is imported, as drivers of database/sql do; the
// import is enough:
//
//	import _ "github.com/guidonhq/guidon/core/db/sqlite" // opens SQLite files
//
// The server (package app) and the databases of tests (core/db/dbtest) import it. Everything
// that calls the library is here: connections, its error codes, scans without database/sql,
// and the SQL functions that every connection has.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/db"
	_ "github.com/guidonhq/guidon/core/sqlitepages" // before the first file is opened
)

func init() { db.RegisterSQLite(library{}) }

// library implements db.SQLiteDriver.
type library struct{}

// NewConnector implements db.SQLiteDriver.
func (library) NewConnector(dsn string) (driver.Connector, error) {
	return sqlitedriver.NewConnector(dsn)
}

// NewScanner implements db.SQLiteDriver.
func (library) NewScanner(file string, busy time.Duration) db.SQLiteScanner {
	return newScanPool(file, busy)
}

// CheckEvents implements db.SQLiteDriver.
func (library) CheckEvents(ctx context.Context, pool *sql.DB, limit int) ([]string, error) {
	return checkEvents(ctx, pool, limit)
}

// ErrorCode implements db.SQLiteDriver.
func (library) ErrorCode(err error) int {
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return e.Code()
	}
	if e, ok := errors.AsType[*scanError](err); ok {
		return e.code
	}
	return 0
}
