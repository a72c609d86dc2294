package pglog_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/eventlogtest"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
)

// node is what a test needs to open logs in one database.
type node struct {
	db  *db.DB
	cfg pglog.Config
	hub bool // open starts a notify.Hub
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{db: dbtest.Postgres(t), cfg: pglog.DefaultConfig()}
	n.cfg.Partitions, n.cfg.TrimInterval, n.cfg.AppendTimeout = 3, time.Hour, 10*time.Second
	n.cfg.MaxAge, n.cfg.MaxBytes = 0, 1
	n.cfg.AcceptWeakTopic = true // the test server does not sync
	return n
}

func (n *node) open(t testing.TB) *pglog.Log {
	t.Helper()
	l, err := n.tryOpen(t)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (n *node) tryOpen(t testing.TB) (*pglog.Log, error) {
	t.Helper()
	log := zaptest.NewLogger(t)
	o := pglog.Options{DB: n.db, Cursors: cursors.New(n.db), Log: log}
	if n.hub {
		o.Hub = notify.New(n.db, log)
		if err := o.Hub.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Hub.Stop(context.WithoutCancel(t.Context())) })
	}
	l, err := pglog.Open(t.Context(), n.cfg, o)
	if err == nil {
		t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	}
	return l, err
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, compression string
		tail              int
		hub               bool
	}{
		{"lz4, with notifications", "lz4", 32 << 20, true}, {"no compression, little memory", "none", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eventlogtest.Run(t, eventlogtest.Log{
				New: func(t *testing.T) func(t *testing.T) eventlog.Log {
					n := newNode(t)
					n.cfg.TailBytes, n.cfg.Compression, n.hub = c.tail, c.compression, c.hub
					return func(t *testing.T) eventlog.Log { return n.open(t) }
				},
				Trim: func(t *testing.T, log eventlog.Log) {
					if _, err := log.(*pglog.Log).Trim(t.Context()); err != nil {
						t.Fatal(err)
					}
				},
				Tokens: true,
			})
		})
	}
}
