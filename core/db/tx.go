package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db/pools"
)

// txKey finds the transaction of one DB in a context.
type txKey struct{ d *DB }

// transaction is what Tx puts into a context.
type transaction struct {
	conn  *sql.Conn
	tx    bun.Tx
	after []func()
}

func (d *DB) txOf(ctx context.Context) *transaction {
	t, _ := ctx.Value(txKey{d}).(*transaction)
	return t
}

// Read returns the transaction in ctx, else a handle that sees what is
// committed, with the connections for the kind of work of ctx. On SQLite that handle
// refuses to write.
func (d *DB) Read(ctx context.Context) bun.IDB {
	if t := d.txOf(ctx); t != nil {
		return t.tx
	}
	return d.readers[pools.Of(ctx)]
}

// Lookup is Read for short reads by key that a client waits for. On SQLite they have
// connections of their own: searches that occupy those of Read do not delay them.
func (d *DB) Lookup(ctx context.Context) bun.IDB {
	if t := d.txOf(ctx); t != nil {
		return t.tx
	}
	return d.lookup
}

// Write returns the transaction in ctx, else a handle on which each statement
// commits by itself. On SQLite that handle is the one writing connection: a
// caller that is inside Tx must pass the context Tx gave it, or it waits for
// itself until its context ends.
func (d *DB) Write(ctx context.Context) bun.IDB {
	if t := d.txOf(ctx); t != nil {
		return t.tx
	}
	return d.write
}

// SQLTx returns the transaction in ctx without bun, nil outside of Tx. It is for
// statements that run for every event.
func (d *DB) SQLTx(ctx context.Context) *sql.Tx {
	if t := d.txOf(ctx); t != nil {
		return t.tx.Tx
	}
	return nil
}

// Tx runs fn in a transaction that Read, Write and PgxConn find in the context
// fn receives, and commits when fn returns nil. An error or a panic of fn rolls
// back; the error is returned as it is, the panic goes on. Inside another Tx of
// the same store fn joins that transaction: nothing commits before the outermost
// fn returns, and a caller that swallows the error of an inner fn commits what
// it did. On SQLite the transaction holds the write lock from the start; on
// PostgreSQL it is read committed, and trying again after Retryable errors is
// the caller's decision.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.txOf(ctx) != nil {
		return fn(ctx)
	}
	t, err := d.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	committed := false
	defer func() {
		if !committed {
			_ = t.tx.Rollback() // the reason is already on its way to the caller
		}
		_ = t.conn.Close()
		if committed {
			for _, f := range t.after {
				f()
			}
		}
	}()
	if err := fn(context.WithValue(ctx, txKey{d}, t)); err != nil {
		return err
	}
	if err := t.tx.Commit(); err != nil {
		return fmt.Errorf("commit transaction: %w", ended(ctx, err))
	}
	committed = true
	return nil
}

// ended returns the error of ctx for a commit that failed because ctx ended. Then
// database/sql has rolled back, and Commit only returns sql.ErrTxDone.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// begin takes a connection and begins on it, so that PgxConn can reach the
// connection under the transaction.
func (d *DB) begin(ctx context.Context) (*transaction, error) {
	d.beginning.Add(1)
	conn, err := d.write.Conn(ctx)
	d.beginning.Add(-1)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &transaction{conn: conn.Conn, tx: tx}, nil
}

// AfterCommit runs f once the transaction in ctx has committed, in the order of
// the calls, on the goroutine that ran Tx; never when it rolls back. Without a
// transaction f runs at once. It is the moment to refresh what memory holds.
// f must use a context of its own: the one inside Tx is over by then.
func (d *DB) AfterCommit(ctx context.Context, f func()) {
	if t := d.txOf(ctx); t != nil {
		t.after = append(t.after, f)
		return
	}
	f()
}
