package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/eventlogtest"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// node is what a test needs to open logs on one cluster.
type node struct {
	cluster *kfake.Cluster
	db      *db.DB
	cfg     kafka.Config
	seen    *observer.ObservedLogs
	log     *zap.Logger
}

// newNode starts a cluster of three brokers, without the topic of the config.
func newNode(t testing.TB, opts ...kfake.Opt) *node {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	core, seen := observer.New(zap.DebugLevel)
	n := &node{cluster: c, db: dbtest.SQLite(t), cfg: kafka.DefaultConfig(), seen: seen, log: zap.New(core)}
	n.cfg.URL = "kafka://" + c.ListenAddrs()[0] + "/guidon"
	n.cfg.Partitions, n.cfg.TrimInterval, n.cfg.AppendTimeout = 3, time.Hour, 10*time.Second
	n.cfg.MaxAge, n.cfg.MaxBytes = 0, 1
	return n
}

func (n *node) open(t testing.TB) *kafka.Log {
	t.Helper()
	l, err := n.tryOpen(t)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (n *node) tryOpen(t testing.TB) (*kafka.Log, error) {
	t.Helper()
	l, err := kafka.Open(t.Context(), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log})
	if err == nil {
		t.Cleanup(func() { _ = l.Close(context.Background()) })
	}
	return l, err
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		tail int
	}{{"reading from the tail", 32 << 20}, {"reading from the brokers", 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eventlogtest.Run(t, eventlogtest.Log{
				New: func(t *testing.T) func(t *testing.T) eventlog.Log {
					n := newNode(t)
					n.cfg.TailBytes = c.tail
					return func(t *testing.T) eventlog.Log { return n.open(t) }
				},
				Trim: func(t *testing.T, log eventlog.Log) {
					if _, err := log.(*kafka.Log).Trim(t.Context()); err != nil {
						t.Fatal(err)
					}
				},
				Tokens: true,
			})
		})
	}
}
