package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

const (
	pingInterval = 2 * time.Second
	pingTimeout  = 5 * time.Second
)

// condition returns the state of the connection without a query: that of the last
// check.
func (w *waiting) condition() Condition {
	select {
	case <-w.ready:
	default:
		return Condition{State: "waiting", Message: "waiting for the database", Since: &w.began}
	}
	if since := w.lost.Load(); since != nil {
		return Condition{State: "lost", Message: "the database does not answer: capture and decide work from memory", Since: since}
	}
	return Condition{State: "ok"}
}

// watchConnection checks until ctx ends whether the database answers, and logs
// each change. It has a connection of its own: the pool may be exhausted while
// the database works.
func (d *DB) watchConnection(ctx context.Context, log *zap.Logger) {
	cfg := d.pool.Config().ConnConfig
	var conn *pgx.Conn
	for retry.Sleep(ctx, pingInterval) {
		var err error
		if conn, err = ping(ctx, cfg, conn); ctx.Err() == nil {
			d.waiting.setLost(err, log.With(zap.Stringer("database", d)))
		}
	}
	closeConn(conn)
}

// ping checks that the database answers on conn, else on a new connection: the
// old one may have been closed because it was idle. It returns the connection for
// the next check.
func ping(ctx context.Context, cfg *pgx.ConnConfig, conn *pgx.Conn) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if conn != nil {
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		closeConn(conn)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func closeConn(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// setLost records the result of a check; nil means that the database answers.
func (w *waiting) setLost(err error, log *zap.Logger) {
	since := w.lost.Load()
	switch {
	case err != nil && since == nil:
		now := time.Now().UTC()
		w.lost.Store(&now)
		log.Warn("database lost: capture and decide work from memory", zap.Error(err))
	case err == nil && since != nil:
		w.lost.Store(nil)
		log.Info("database reachable again", zap.Duration("lost_for", time.Since(*since).Round(time.Millisecond)))
	}
}
