package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

// watchedConnector opens connections to a SQLite file that report a malformed
// page to a watch, whichever statement meets it, and measure statements.
type watchedConnector struct {
	driver.Connector

	watch  *watch
	times  *queryTimes
	writes bool // the pool writes
}

// Connect opens a connection.
func (c *watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedConn{sqliteConn: conn.(sqliteConn), watch: c.watch, times: c.times, statements: newStatements(), writes: c.writes}, nil
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

	watch      *watch
	times      *queryTimes
	statements *statements
	writes     bool // it is the connection of the writing pool
	closed     bool
}

// Close closes the connection and its prepared statements.
func (c *watchedConn) Close() error {
	c.closed = true
	c.statements.closeAll()
	return c.sqliteConn.Close()
}

// PrepareContext prepares a statement.
func (c *watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ExecContext runs a statement.
func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query, len(args))
	if err != nil {
		return nil, err
	}
	if s == nil {
		begin := time.Now()
		r, err := c.sqliteConn.ExecContext(ctx, query, args)
		c.times.observe(kindExec, begin)
		return r, c.watch.seen(err)
	}
	r, err := s.ExecContext(ctx, args)
	if e := s.release(); err == nil {
		err = e
	}
	return r, err
}

// QueryContext runs a query.
func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query, len(args))
	if err != nil {
		return nil, err
	}
	if s == nil {
		begin := time.Now()
		r, err := c.sqliteConn.QueryContext(ctx, query, args)
		return c.rows(r, err, begin)
	}
	r, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.release() // the statement failed: this closes it
		return nil, err
	}
	return &keptRows{r.(*watchedRows), s}, nil
}

// BeginTx begins a transaction.
func (c *watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedTx{tx, c}, nil
}

type watchedTx struct {
	driver.Tx

	conn *watchedConn
}

// Commit commits the transaction.
func (t *watchedTx) Commit() error {
	begin := time.Now()
	err := t.Tx.Commit()
	t.conn.times.observe(kindCommit, begin)
	return t.conn.watch.seen(err)
}

type watchedRows struct {
	sqliteRows

	conn   *watchedConn
	begin  time.Time // of the query
	failed bool      // reading a row failed
}

func (c *watchedConn) rows(r driver.Rows, err error, begin time.Time) (driver.Rows, error) {
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedRows{sqliteRows: r.(sqliteRows), conn: c, begin: begin}, nil
}

// Close ends the query.
func (r *watchedRows) Close() error {
	err := r.sqliteRows.Close()
	r.conn.times.observe(kindQuery, r.begin)
	return err
}

// Next reads the next row.
func (r *watchedRows) Next(dest []driver.Value) error {
	err := r.sqliteRows.Next(dest)
	r.failed = r.failed || err != nil && !errors.Is(err, io.EOF)
	return r.conn.watch.seen(err)
}
