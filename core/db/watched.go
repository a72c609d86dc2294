package db

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// watchedConnector opens connections to a SQLite file that report a malformed
// page to a watch, whichever statement meets it.
type watchedConnector struct {
	driver.Connector

	watch *watch
}

// Connect opens a connection.
func (c *watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedConn{conn.(sqliteConn), c.watch}, nil
}

// sqliteConn lists what the driver's connections implement.
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

// sqliteStmt lists what the driver's statements implement.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// sqliteRows lists what the driver's rows implement.
type sqliteRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// seen reports err if it means a malformed file, and adds what to do to it.
func (w *watch) seen(err error) error {
	if err == nil || !isMalformed(err) {
		return err
	}
	w.malformed.Inc()
	w.found(err.Error())
	return fmt.Errorf("the database is damaged: %w; %s", err, whatToDo)
}

type watchedConn struct {
	sqliteConn

	watch *watch
}

// PrepareContext prepares a statement.
func (c *watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedStmt{s.(sqliteStmt), c.watch}, nil
}

// ExecContext runs a statement.
func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.sqliteConn.ExecContext(ctx, query, args)
	return r, c.watch.seen(err)
}

// QueryContext runs a query.
func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.sqliteConn.QueryContext(ctx, query, args)
	return c.watch.rows(r, err)
}

// BeginTx begins a transaction.
func (c *watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedTx{tx, c.watch}, nil
}

type watchedTx struct {
	driver.Tx

	watch *watch
}

// Commit commits the transaction.
func (t *watchedTx) Commit() error { return t.watch.seen(t.Tx.Commit()) }

type watchedStmt struct {
	sqliteStmt

	watch *watch
}

// ExecContext runs the statement.
func (s *watchedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.sqliteStmt.ExecContext(ctx, args)
	return r, s.watch.seen(err)
}

// QueryContext runs the query.
func (s *watchedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := s.sqliteStmt.QueryContext(ctx, args)
	return s.watch.rows(r, err)
}

type watchedRows struct {
	sqliteRows

	watch *watch
}

func (w *watch) rows(r driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, w.seen(err)
	}
	return &watchedRows{r.(sqliteRows), w}, nil
}

// Next reads the next row.
func (r *watchedRows) Next(dest []driver.Value) error { return r.watch.seen(r.sqliteRows.Next(dest)) }
