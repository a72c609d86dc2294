package simulation

import (
	"context"
	"database/sql/driver"
	"time"
)

// sqlRates are those of statements, commitSQLRates those of commits. A commit may be
// done without an answer, as by a lost connection.
var (
	sqlRates       = Rates{Fail: 0.003, End: 0.0004, Slow: 100 * time.Millisecond}
	commitSQLRates = Rates{Fail: 0.02, Lose: 0.03, End: 0.02, Slow: 500 * time.Millisecond}
)

// Connector returns a function for db.OpenWrapped: the connections to a SQLite file
// have the failures and outages of the process. They do not sync to disk.
func (p *Process) Connector(c driver.Connector) driver.Connector { return &connector{c, p} }

type connector struct {
	driver.Connector

	process *Process
}

// Connect opens a connection.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.process.HasEnded() {
		return nil, ErrEnded
	}
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	raw := opened.(sqliteConn)
	if _, err := raw.ExecContext(ctx, "PRAGMA synchronous = OFF", nil); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &conn{raw, c.process}, nil
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

// do runs a statement of the process.
func (p *Process) do(operation string, r Rates, apply func() error) error {
	if p.fast {
		r.Slow = 0
	}
	if p.down.Load() && !p.plan.IsCalm() {
		if p.fast {
			return ErrInjected
		}
		if err := p.Sleep(context.Background(), time.Millisecond); err != nil {
			return err
		}
		return ErrInjected
	}
	return p.Do("sql "+operation, r, apply)
}

type conn struct {
	sqliteConn

	process *Process
}

// ExecContext runs a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.process.do("statement", sqlRates, func() (err error) {
		r, err = c.sqliteConn.ExecContext(ctx, query, args)
		return err
	})
	return r, err
}

// QueryContext runs a query.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.process.do("query", sqlRates, func() (err error) {
		r, err = c.sqliteConn.QueryContext(ctx, query, args)
		return err
	})
	return rows(r, err)
}

// PrepareContext prepares a statement.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &stmt{s.(sqliteStmt), c.process}, nil
}

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (t driver.Tx, err error) {
	err = c.process.do("begin", sqlRates, func() (err error) {
		t, err = c.sqliteConn.BeginTx(ctx, opts)
		return err
	})
	if err != nil && t != nil {
		_ = t.Rollback() // the process ended behind the begin
	}
	if err != nil {
		return nil, err
	}
	return &tx{t, c.process}, nil
}

type tx struct {
	driver.Tx

	process *Process
}

// Commit commits the transaction, or rolls it back and fails.
func (t *tx) Commit() error {
	done := false
	err := t.process.do("commit", commitSQLRates, func() error {
		done = true
		return t.Tx.Commit()
	})
	if !done {
		_ = t.Rollback() // database/sql does not after a failed commit
	}
	return err
}

type stmt struct {
	sqliteStmt

	process *Process
}

// ExecContext runs the statement.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.process.do("statement", sqlRates, func() (err error) {
		r, err = s.sqliteStmt.ExecContext(ctx, args)
		return err
	})
	return r, err
}

// QueryContext runs the query.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.process.do("query", sqlRates, func() (err error) {
		r, err = s.sqliteStmt.QueryContext(ctx, args)
		return err
	})
	return rows(r, err)
}

// rows closes the rows of a query behind which the process has ended.
func rows(r driver.Rows, err error) (driver.Rows, error) {
	if err == nil {
		return r, nil
	}
	if r != nil {
		_ = r.Close()
	}
	return nil, err
}
