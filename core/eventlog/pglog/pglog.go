// Package pglog keeps the log of accepted requests in the Postgres database that the
// nodes share: for two or three nodes without a broker.
//
// A node collects the requests that arrive while a commit is in flight and stores them in
// the next one: rows of consecutive records of one partition, compressed, in one statement
// and one transaction. Append returns after the server has synced it; the transaction
// switches synchronous_commit on where the server has it off.
//
// Numbers of a partition have no gaps. The transaction takes an advisory lock before it
// gives numbers, so they become visible in their order, and the commits of all nodes are
// one after the other. The newest number is that of the newest row: no row is ever
// changed, so nothing slows down while a long transaction keeps old versions of rows.
//
// Rows are in tables of segments. The newest segment takes the appends. One node at a time
// trims: it begins a new segment by size and age, and empties the table of the oldest with
// TRUNCATE when all readers have done its records and the retention does not keep them.
// Nothing is left for vacuum. When no table is free, the newest segment grows.
//
// Another node's append wakes waiting readers through package notify; the newest numbers
// are also polled. Records that were read stay in memory for the other readers of their
// partition. The leases of package cluster say which node reads a partition, and the
// cursors of package cursors hold the positions, fenced by the tokens of the leases.
//
// docs/decisions/0077 has the measurements.
package pglog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

// Log is the log of a database. It implements eventlog.Log.
type Log struct {
	cfg     Config
	id      string
	store   store
	cursors *cursors.Store
	hub     *notify.Hub // nil: other nodes are polled
	sender  string      // of this Log, in notifications
	log     *zap.Logger
	metrics *logstate.Metrics

	attachment *cursors.Attachment
	partitions []*partition
	queue      logstate.Queue
	health     logstate.Health
	retention  atomic.Pointer[retention]
	reached    atomic.Int64 // when the server answered last, in nanoseconds since 1970

	pending  chan *request // appends for the writer
	appended chan struct{} // has a value after an append, for the publisher
	poll     chan struct{} // has a value when another node has appended

	refreshing sync.Mutex // held while the head is read
	refreshed  time.Time  // when the head was read; with refreshing

	segmentsMu sync.Mutex
	segments   []segment // the oldest first

	ctx    context.Context // of the background work
	cancel context.CancelFunc
	work   sync.WaitGroup
	closed atomic.Bool
	closer sync.Once
	done   chan struct{} // closed when the connections are
}

var _ eventlog.Log = (*Log)(nil)

// Options are what Open needs beside the config.
type Options struct {
	DB      *db.DB                // Postgres; the database that all nodes share
	Cursors *cursors.Store        // of DB
	Hub     *notify.Hub           // nil: the appends of other nodes are polled
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

// Open creates the log or checks it, and records in the database that its nodes use it.
// It waits for the server until the StartTimeout.
func Open(ctx context.Context, cfg Config, o Options) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if o.DB == nil || !o.DB.Postgres() {
		return nil, errors.New("journal.url: postgres needs a database.url of PostgreSQL")
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l := &Log{
		cfg: cfg, cursors: o.Cursors, hub: o.Hub, sender: rand.Text(), log: o.Log.Named("log"),
		pending: make(chan *request, cfg.MaxQueueRecords), appended: make(chan struct{}, 1), poll: make(chan struct{}, 1), done: make(chan struct{}),
		queue: logstate.Queue{MaxBytes: int64(cfg.MaxQueueBytes), MaxRecords: int64(cfg.MaxQueueRecords)},
	}
	l.SetRetention(cfg.MaxBytes, cfg.MaxAge)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.start(ctx, o); err != nil {
		l.cancel()
		l.store.close()
		return nil, fmt.Errorf("open the log in the database: %w", err)
	}
	return l, nil
}

func (l *Log) start(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.StartTimeout)
	defer cancel()
	if !o.DB.WaitReady(ctx) {
		return ctx.Err()
	}
	var err error
	if l.store, err = openStore(ctx, o.DB); err != nil {
		return err
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	var partitions int
	if l.id, partitions, err = l.store.create(ctx, l.cfg.Partitions); err != nil {
		return err
	}
	if err := l.cursors.Attach(ctx, l.id, partitions, o.replacing(l.cfg.AcceptOtherLog, l.id)); err != nil {
		return err
	}
	l.attachment = l.cursors.Attachment(l.id, partitions, l.log)
	for i := range partitions {
		l.partitions = append(l.partitions, newPartition(l, i))
	}
	if err := l.refresh(ctx); err != nil {
		return err
	}
	encoder, err := newEncoder(l.cfg.Compression)
	if err != nil {
		return err
	}
	if l.metrics, err = logstate.NewMetrics(o.Metrics); err != nil {
		return err
	}
	l.work.Go(func() { l.write(encoder) })
	l.work.Go(l.watch)
	l.work.Go(l.maintain)
	l.work.Go(func() { l.attachment.Watch(l.ctx) })
	if l.hub != nil {
		l.work.Go(l.publish)
	}
	l.log.Info("log opened", zap.String("id", l.id), zap.Int("partitions", partitions))
	return nil
}

// check refuses a server that cannot keep what was acknowledged.
func (l *Log) check(ctx context.Context) error {
	syncs, err := l.store.syncs(ctx)
	if err != nil || syncs {
		return err
	}
	if !l.cfg.AcceptWeakTopic {
		return errors.New("the server has fsync off and loses acknowledged requests when its machine fails; switch it on, or set journal.accept_weak_topic")
	}
	l.log.Warn("the server has fsync off: acknowledged requests may be lost")
	return nil
}

// ID names the log. Another ID has other records.
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
		go func() {
			l.queue.Wait()
			l.cancel()
			l.work.Wait()
			l.store.close()
			l.metrics.Unregister()
			l.log.Info("log closed")
			close(l.done)
		}()
		l.wakeAll()
	})
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
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

// wakeAll wakes the waiters of all partitions.
func (l *Log) wakeAll() {
	for _, p := range l.partitions {
		p.mu.Lock()
		p.broadcast()
		p.mu.Unlock()
	}
}

// Unreachable returns the time since the server answered. It answers each second at least.
func (l *Log) Unreachable() time.Duration {
	return time.Since(time.Unix(0, l.reached.Load()))
}

// unreachableAfter is the time without an answer of the server after which the log is
// not reachable.
const unreachableAfter = 10 * time.Second

// Reachable reports whether the server has answered within 10 seconds. A log that the
// database has replaced is not reachable.
func (l *Log) Reachable() bool {
	return l.attachment.Err() == nil && l.Unreachable() <= unreachableAfter
}

// Broken returns why appends are refused now, or that the server does not answer; nil
// while the log works.
func (l *Log) Broken() error {
	if err := l.attachment.Err(); err != nil {
		return err
	}
	if err := l.health.Current(); err != nil {
		return err
	}
	if !l.Reachable() {
		return logstate.ErrUnreadable.Because(fmt.Errorf("the database has not answered for %s", l.Unreachable().Round(time.Second)))
	}
	return nil
}

// contacted records that the server has answered.
func (l *Log) contacted() { l.reached.Store(time.Now().UnixNano()) }
