// Package kafka keeps the log of accepted requests in a topic of Apache Kafka.
//
// A partition of the log is a partition of the topic, and the number of a record its
// offset plus one. Append returns after all replicas that are in sync have the record. While
// two groups of appends are in flight, the next ones collect for a few milliseconds.
// Open creates the topic, or checks that it can keep what was acknowledged.
//
// Reading does not use consumer groups: the leases of package cluster say which node
// reads a partition, and the cursors of package cursors hold the positions, fenced by the
// tokens of the leases. One loop fetches the newest records of all partitions that this
// node reads into a tail in memory, from which the readers that keep up are served. A
// reader that is further behind fetches its records itself. A partition that is not read
// for a minute is fetched no longer.
//
// The topic keeps every record. The node that reads a partition deletes what all readers
// have done and the retention of the log does not keep. Where the topic has a finite
// retention nevertheless, appends to a partition are refused before that retention
// reaches an unread record. If it has removed unread records, Read returns a
// *journal.DamagedError with their numbers.
//
// The package does not encrypt records, and it does not change a topic that exists.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

// Log is a topic. It implements eventlog.Log.
type Log struct {
	cfg     Config
	target  *Target
	topic   *topicState
	id      string
	cursors *cursors.Store
	log     *zap.Logger
	metrics *logstate.Metrics

	client *kgo.Client  // appends and reads the tails
	direct *kgo.Client  // reads records before the tails, and all else
	admin  *kadm.Client // of direct

	partitions   []*partition
	decompressor kgo.Decompressor
	queue        logstate.Queue
	groups       *appendGroups
	retention    atomic.Pointer[retention]
	health       logstate.Health
	reached      atomic.Int64 // when a broker answered last, in nanoseconds since 1970
	offsets      atomic.Int64 // when the offsets of all partitions were read
	refreshing   sync.Mutex   // held by recentOffsets

	claim claim
	taken atomic.Bool // another database has the topic

	attachment *cursors.Attachment

	ctx    context.Context // of the background work
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed atomic.Bool
	closer sync.Once
	done   chan struct{} // closed when the clients are
}

var _ eventlog.Log = (*Log)(nil)

// Options are what Open needs beside the config.
type Options struct {
	Cursors *cursors.Store        // of the database that all nodes share
	Log     *zap.Logger           // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics

	// Replace is asked before the log id takes the place of another one, which
	// AcceptOtherLog allows: an error keeps the other one. nil always agrees.
	Replace func(ctx context.Context, id string) error
}

// replacing returns what cursors.Store.Attach asks before it replaces a log.
func (o *Options) replacing(accept bool, id string) func(ctx context.Context) error {
	if !accept {
		return nil
	}
	return func(ctx context.Context) error {
		if o.Replace == nil {
			return nil
		}
		return o.Replace(ctx, id)
	}
}

// Open connects to the brokers, creates or checks the topic, and records in the database
// that its nodes use this log. It waits for brokers until the StartTimeout.
func Open(ctx context.Context, cfg Config, o Options) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	target, err := Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l := &Log{cfg: cfg, target: target, cursors: o.Cursors, log: o.Log.Named("log"), done: make(chan struct{}), decompressor: kgo.DefaultDecompressor()}
	l.SetRetention(cfg.MaxBytes, cfg.MaxAge)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.start(ctx, o); err != nil {
		l.cancel()
		l.closeClients()
		return nil, fmt.Errorf("open the log %s: %w", target.Topic, err)
	}
	return l, nil
}

func (l *Log) start(ctx context.Context, o Options) error {
	opts, err := l.target.connectOptions(l.cfg, l.log)
	if err != nil {
		return err
	}
	opts = append(opts, kgo.WithHooks(contact{&l.reached}))
	if l.direct, err = kgo.NewClient(opts...); err != nil {
		return err
	}
	l.admin = kadm.NewClient(l.direct)
	ctx, cancel := context.WithTimeout(ctx, l.cfg.StartTimeout)
	defer cancel()
	if err := l.connect(ctx); err != nil {
		return err
	}
	if l.topic, err = l.openTopic(ctx); err != nil {
		return err
	}
	l.id = l.topic.logID()
	if err := l.cursors.Attach(ctx, l.id, l.topic.partitions, o.replacing(l.cfg.AcceptOtherLog, l.id)); err != nil {
		return err
	}
	l.attachment = l.cursors.Attachment(l.id, l.topic.partitions, l.log)
	if err := l.claimTopic(ctx, l.cfg.AcceptOtherLog); err != nil {
		return err
	}
	for i := range l.topic.partitions {
		l.partitions = append(l.partitions, newPartition(l, int32(i)))
	}
	if err := l.firstOffsets(ctx); err != nil {
		return fmt.Errorf("read the offsets of the topic: %w", err)
	}
	if l.metrics, err = logstate.NewMetrics(o.Metrics); err != nil {
		return err
	}
	if l.client, err = kgo.NewClient(append(opts, clientOptions(l.cfg, l.topic.batchBytes(l.cfg))...)...); err != nil {
		return err
	}
	l.groups = l.newAppendGroups()
	l.queue = logstate.Queue{MaxBytes: int64(l.cfg.MaxQueueBytes), MaxRecords: int64(l.cfg.MaxQueueRecords)}
	l.work.Go(l.fetchLoop)
	l.work.Go(l.maintain)
	l.work.Go(func() { l.attachment.Watch(l.ctx) })
	l.log.Info("log opened", zap.String("id", l.id), zap.Int("partitions", l.topic.partitions), zap.Int("replicas", l.topic.replicas),
		zap.Duration("retention", l.topic.retention))
	return nil
}

// connect waits until a broker answers. Where none does, the error names the last cause: an
// attempt that only ran out of time does not hide it.
func (l *Log) connect(ctx context.Context) error {
	var cause, last error
	logged := map[string]bool{}
	for {
		err := l.direct.Ping(ctx)
		if err == nil {
			return nil
		}
		if isRefusal(err) {
			return l.connectError(err)
		}

		last = err
		if cause == nil || !ranOutOfTime(err) {
			cause = err
		}
		if why := l.target.explain(err); !logged[why] && ctx.Err() == nil {
			l.log.Warn("log brokers unreachable", zap.Strings("brokers", l.target.Brokers), zap.String("reason", why), zap.Error(err))
			logged[why] = true
		}

		select {
		case <-ctx.Done():
			if ranOutOfTime(last) && !ranOutOfTime(cause) {
				return fmt.Errorf("%w; since then no broker answers", l.connectError(cause))
			}
			return l.connectError(cause)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// retention is how much is kept of what every reader has done.
type retention struct {
	maxBytes int64
	maxAge   time.Duration
}

// SetRetention replaces Config.MaxBytes and Config.MaxAge from the next round on.
func (l *Log) SetRetention(maxBytes int64, maxAge time.Duration) {
	l.retention.Store(&retention{maxBytes, maxAge})
}

// ID names the cluster and the topic. Another ID has other records.
func (l *Log) ID() string { return l.id }

// Partitions implements eventlog.Log.
func (l *Log) Partitions() int { return len(l.partitions) }

// Partition implements eventlog.Log. The methods of a partition that the log does not
// have return an Invalid fault.
func (l *Log) Partition(number int, token int64) eventlog.Partition {
	if number < 0 || number >= len(l.partitions) {
		return owned{nil, token}
	}
	p := l.partitions[number]
	p.raiseToken(token)
	return owned{p, token}
}

// Close implements eventlog.Log.
func (l *Log) Close(ctx context.Context) error {
	l.closer.Do(func() {
		l.closed.Store(true)
		l.queue.Close()
		l.cancel()
		go func() {
			l.queue.Wait()
			l.work.Wait()
			l.closeClients()
			l.metrics.Unregister()
			l.log.Info("log closed")
			close(l.done)
		}()
	})
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) closeClients() {
	for _, c := range []*kgo.Client{l.client, l.direct} {
		if c != nil {
			c.Close()
		}
	}
}

// Unreachable returns the time since a broker answered. While a partition is read, brokers
// answer each second; else at least at the TrimInterval. The owner of a partition gives it
// up when this becomes too long, as Read and Wait show no error to a reader that has read
// everything.
func (l *Log) Unreachable() time.Duration {
	return time.Since(time.Unix(0, l.reached.Load()))
}

// unreachableAfter is the least time without an answer of a broker after which the log
// is not reachable.
const unreachableAfter = 10 * time.Second

// Reachable reports whether a broker has answered within 10 seconds, or within two
// TrimIntervals if that is longer. A log that the database has replaced is not reachable,
// so that other nodes read its partitions.
func (l *Log) Reachable() bool {
	return l.attachment.Err() == nil && l.Unreachable() <= max(unreachableAfter, 2*l.cfg.TrimInterval)
}

// Broken returns why appends are refused now, or that no broker answers; nil while the
// log works.
func (l *Log) Broken() error {
	if l.taken.Load() {
		return errTaken
	}
	if err := l.attachment.Err(); err != nil {
		return err
	}
	if err := l.health.Current(); err != nil {
		return err
	}
	if !l.Reachable() {
		return logstate.ErrUnreadable.Because(fmt.Errorf("no broker has answered for %s", l.Unreachable().Round(time.Second)))
	}
	return nil
}

// contact keeps when a broker answered last.
type contact struct{ at *atomic.Int64 }

// OnBrokerRead implements kgo.HookBrokerRead.
func (c contact) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		c.at.Store(time.Now().UnixNano())
	}
}

// errClosed reports whether err is that of a client that is closed.
func errClosed(err error) bool { return errors.Is(err, kgo.ErrClientClosed) }
