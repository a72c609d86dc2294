package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// SQLiteDriver is what this package needs of the SQLite library. Package core/db/sqlite
// implements it.
type SQLiteDriver interface {
	// NewConnector returns a connector of database/sql; dsn is a URI of SQLite with the
	// parameters of modernc.org/sqlite. Connections, statements and rows implement what
	// sqliteConn, sqliteStmt and sqliteRows list.
	NewConnector(dsn string) (driver.Connector, error)
	// NewScanner returns connections to a file for DB.Scan, which wait for a lock for the
	// given time. It opens nothing yet.
	NewScanner(file string, busy time.Duration) SQLiteScanner
	// CheckEvents returns at most limit problems of the compressed events of a file. It
	// reads all of them and changes nothing.
	CheckEvents(ctx context.Context, pool *sql.DB, limit int) (problems []string, err error)
	// ErrorCode returns the extended result code of an error of SQLite, 0 for other errors.
	ErrorCode(err error) int
}

// SQLiteScanner reads many rows of a SQLite file. It is safe for concurrent use.
type SQLiteScanner interface {
	// Scan runs queries in one read transaction and calls fn for every row with the
	// number of its query, until fn fails. It calls pause again and again while SQLite
	// works; pause may sleep.
	Scan(ctx context.Context, queries []string, pause func(), fn func(query int, r SQLiteRow) error) error
	// Close closes idle connections, and the others at the end of their scan.
	Close()
}

// SQLiteRow is a row of a SQLiteScanner; see Row.
type SQLiteRow interface {
	Int(column int) int64
	Bytes(column int) []byte
}

// SQLitePauseFunction is the name of an SQL function that the driver gives every connection
// of database/sql: it pauses as scan.Pause does and returns 1. Statements that read many rows
// without returning them call it once in a while.
const SQLitePauseFunction = "guidon_pause"

// sqliteDriver is set by RegisterSQLite before main begins, nil without a driver.
var sqliteDriver SQLiteDriver

// RegisterSQLite sets the driver that opens SQLite files. Only an init function may call
// it, once in a program: binaries that open SQLite files import core/db/sqlite.
func RegisterSQLite(d SQLiteDriver) {
	if sqliteDriver != nil {
		panic("db: RegisterSQLite called twice")
	}
	sqliteDriver = d
}

// errNoSQLite is the error of a program that does not import the driver. It is no error of
// an operator: the server always imports it.
var errNoSQLite = errors.New("this program has no SQLite: it must import core/db/sqlite")

// openSQLitePool returns a pool for a file, without a connection yet.
func openSQLitePool(dsn string) (*sql.DB, error) {
	c, err := newSQLiteConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

func newSQLiteConnector(dsn string) (driver.Connector, error) {
	if sqliteDriver == nil {
		return nil, errNoSQLite
	}
	return sqliteDriver.NewConnector(dsn)
}

// SQLite's primary result codes, and extended ones of violated constraints.
const (
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteReadOnly = 8
	sqliteIOError  = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotDB    = 26

	sqliteForeignKey = 787
	sqlitePrimaryKey = 1555
	sqliteUnique     = 2067
	sqliteRowID      = 2579
)

// sqliteCode is the extended result code of a SQLite error, 0 for others. Without a driver
// no error is one of SQLite.
func sqliteCode(err error) int {
	if sqliteDriver == nil {
		return 0
	}
	return sqliteDriver.ErrorCode(err)
}
