package dbtest

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/db"
)

// ErrFailed is the error of a statement that a test has let fail.
var ErrFailed = errors.New("this statement fails in a test")

// Failures lets one statement of a database fail: a query, a change, or the begin or commit of a
// transaction. A test that fails each of an operation's statements in turn sees what the operation
// leaves behind wherever it ends.
type Failures struct {
	next   atomic.Int64 // 1 if the next statement fails; 0 if none does
	failed atomic.Bool
}

// FailAt lets the n-th statement from now on fail; 0 lets none.
func (f *Failures) FailAt(n int) {
	f.failed.Store(false)
	f.next.Store(int64(n))
}

// HasFailed reports whether a statement has failed since FailAt, and lets none fail any more.
func (f *Failures) HasFailed() bool {
	f.next.Store(0)
	return f.failed.Load()
}

func (f *Failures) check() error {
	if f.next.Load() > 0 && f.next.Add(-1) == 0 {
		f.failed.Store(true)
		return ErrFailed
	}
	return nil
}

// FailingSQLite returns a fresh, migrated SQLite database, whose statements fail as told. It
// closes with tb.
func FailingSQLite(tb testing.TB) (*db.DB, *Failures) {
	tb.Helper()
	f := &Failures{}
	file := strings.TrimPrefix(SQLiteURL(tb), "sqlite:")
	d, err := db.OpenWrapped(tb.Context(), file, func(c driver.Connector) driver.Connector { return &failingConnector{c, f} })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return d, f
}

type failingConnector struct {
	driver.Connector

	failures *Failures
}

func (c *failingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &failingConn{opened.(sqliteConn), c.failures}, nil
}

// sqliteConn and sqliteStmt list what the driver's connections and statements implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type failingConn struct {
	sqliteConn

	failures *Failures
}

func (c *failingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.failures.check(); err != nil {
		return nil, err
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c *failingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.failures.check(); err != nil {
		return nil, err
	}
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (c *failingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &failingStmt{s.(sqliteStmt), c.failures}, nil
}

func (c *failingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.failures.check(); err != nil {
		return nil, err
	}
	t, err := c.sqliteConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &failingTx{t, c.failures}, nil
}

type failingTx struct {
	driver.Tx

	failures *Failures
}

func (t *failingTx) Commit() error {
	if err := t.failures.check(); err != nil {
		_ = t.Rollback() // database/sql does not after a failed commit
		return err
	}
	return t.Tx.Commit()
}

type failingStmt struct {
	sqliteStmt

	failures *Failures
}

func (s *failingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.failures.check(); err != nil {
		return nil, err
	}
	return s.sqliteStmt.ExecContext(ctx, args)
}

func (s *failingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.failures.check(); err != nil {
		return nil, err
	}
	return s.sqliteStmt.QueryContext(ctx, args)
}
