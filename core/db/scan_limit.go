package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/fault"
)

// RunScan calls fn with a place for a scan of a request about a project; see package
// scan. Reads with the context that fn receives use the connections for scans. It
// fails with an Unavailable fault if no place becomes free in time, and else
// with the error of fn. In a transaction it calls fn at once: a wait would hold the
// locks of the transaction.
func (d *DB) RunScan(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if d.txOf(ctx) != nil {
		return fn(ctx)
	}
	ctx, end, err := d.limiter.Begin(ctx, projectID)
	return runScan(ctx, end, err, fn)
}

// RunBackgroundScan is RunScan for work that no request waits for: it waits for a place
// until ctx ends.
func (d *DB) RunBackgroundScan(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if d.txOf(ctx) != nil {
		return fn(ctx)
	}
	ctx, end, err := d.limiter.BeginBackground(ctx, projectID)
	return runScan(ctx, end, err, fn)
}

func runScan(ctx context.Context, end func(), err error, fn func(ctx context.Context) error) error {
	if err != nil {
		return err
	}
	defer end()
	return overtime(fn(pools.With(ctx, pools.Scan)))
}

var errOvertime = fault.New(fault.Unavailable, "query_timeout",
	"The database took too long for this. Ask for less, such as a shorter time.").After(10 * time.Second)

// overtime returns an Unavailable fault for a statement that PostgreSQL ended after
// the statement timeout, and other errors as they are.
func overtime(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != "57014" || fault.From(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errOvertime.Because(err)
}

// Scans returns how many scans run and how many wait for a place.
func (d *DB) Scans() (running, waiting int) { return d.limiter.Running() }
