// Package clickhouse keeps the events of the event store in ClickHouse. Everything else
// stays in PostgreSQL.
//
// # Writing
//
// The worker's transaction writes a batch as one row of event_outbox in PostgreSQL, and its
// uuids to event_outbox_uuids. A background loop inserts the rows of the outbox into
// ClickHouse, in their order, and removes them. So an outage of ClickHouse delays events and
// loses none; a full outbox makes Insert fail with Unavailable, and the worker waits.
//
// Events get their row numbers under a lock that their transaction holds until its end: rows
// become visible in their order. The row up to which ClickHouse has all events is in
// event_outbox_state; Last and Checkpoint return it.
//
// One node at a time inserts: it holds an advisory lock of a transaction. When the outcome of
// the previous insertion is unknown (another node did it, or it failed) the loop asks
// ClickHouse for the rows that are there, and inserts the others. If none is there, the request
// may still arrive: it is repeated with the same rows (event_insertion), so ClickHouse drops
// the later one of the two by its token. Where that does not hold (18.16, or a part of the rows
// was there), rows are stored twice until ClickHouse merges them: the table is a
// ReplacingMergeTree, and lists show such an event once.
//
// An event is known if its uuid is in event_outbox_uuids or in ClickHouse. The first is read
// before the second, so that an event on its way is found. While ClickHouse is away, only the
// first is read, and the loop removes repeated events before it inserts them.
//
// ClickHouse may refuse an event for its data, such as by a constraint or a view of
// an operator. Then the batch is halved until the event is found; it becomes a dead letter
// (package refusal), and the others are stored. If it refuses all events of a batch, and for every
// other error, the batch waits.
//
// # Reading
//
// Events have no person of their own but the one at the time; the current one comes from
// PostgreSQL with each query. A merge rewrites nothing. The erasure of a person is recorded in
// event_erasures before ClickHouse rewrites its parts; until that is done, every query leaves
// these events out. A loop beside that of the insertions finishes recorded erasures (package
// mutation), so a deletion that fails in ClickHouse stops neither insertions nor later
// erasures.
//
// # Failures
//
// A ClickHouse that cannot be reached, or that refuses events (an old version, tables of
// something else, missing rights), stops nothing at the start: events wait in the outbox, reads
// fail with Unavailable, and the store tries again until ClickHouse takes them. Status, the metrics
// of Register and Check (for guidon doctor) show it.
//
// The table event_ids finds events by uuid: hashes of 48 bits with the day of the event,
// verified in the table of events.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/erased"
	"github.com/guidonhq/guidon/core/events/clickhouse/health"
	"github.com/guidonhq/guidon/core/events/clickhouse/mutation"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// Store keeps events in ClickHouse. It is safe for concurrent use.
type Store struct {
	db     *db.DB
	shared *events.Shared
	client *wire.Client
	log    *zap.Logger
	limit  int64 // bytes of the outbox

	schema  schemaState
	health  *health.Tracker
	deleter *mutation.Deleter
	erased  *erased.Store
	away    atomic.Int64 // unix microseconds until which ClickHouse is not asked for known events
	drainer string       // identifies this process in event_outbox_state

	mu        sync.Mutex // serializes flush
	uncertain bool       // the outcome of the previous insertion is unknown
	parted    bool       // a part of the previous events is left
	inserted  []passed

	eraseTimeout time.Duration // of one attempt to delete the events of an erasure
	repeatAfter  time.Duration // until the events of an erasure are deleted once more

	wake   chan struct{}
	stored func() // runs after the commit of a batch
	cancel context.CancelFunc
	done   chan struct{}
}

var (
	_ events.Backend = (*Store)(nil)
	_ events.Runner  = (*Store)(nil)
)

// ErrNeedsPostgres is the error of a store without PostgreSQL.
var ErrNeedsPostgres = errors.New("events.url: events in ClickHouse need PostgreSQL for everything else: set database.url to postgres://…, or remove events.url")

// Open returns the event store of cfg: in ClickHouse with events.url, else in d. reg may be
// nil. It does not connect: the schema is made and checked at the first use.
func Open(cfg events.Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) (*events.Service, error) {
	if cfg.URL == "" {
		return events.New(cfg, d, log, reg), nil
	}
	shared := events.NewShared(d)
	s, err := New(cfg, d, shared, log)
	if err != nil {
		return nil, err
	}
	if reg != nil {
		if err := s.Register(reg); err != nil {
			return nil, err
		}
	}
	return events.NewOn(s, shared, cfg, d, log, reg), nil
}

// New returns a Store with its outbox in d.
func New(cfg events.Config, d *db.DB, shared *events.Shared, log *zap.Logger) (*Store, error) {
	if !d.Postgres() {
		return nil, ErrNeedsPostgres
	}
	c, err := wire.New(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("events.url: %w", err)
	}
	s := &Store{
		db: d, shared: shared, client: c, log: log.Named("events.clickhouse"), limit: cfg.OutboxBytes,
		drainer: uuid.NewString(), uncertain: true, wake: make(chan struct{}, 1), health: health.New(),
		deleter: mutation.New(c, eventTable), erased: erased.New(d), eraseTimeout: eraseTimeout, repeatAfter: repeatAfter,
	}
	s.stored = s.wakeUp
	return s, nil
}

// OnStored replaces the wake-up of the background loop after each batch, for tests. It must
// be called before the first Insert.
func (s *Store) OnStored(f func()) { s.stored = f }

func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// The times of the background loop.
const (
	poll     = time.Second            // looks for rows of other nodes
	linger   = 500 * time.Millisecond // between two insertions
	retryMin = 200 * time.Millisecond
	retryMax = 10 * time.Second
)

// Start inserts the rows of the outbox in the background, and reads its size, until Stop.
func (s *Store) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { s.run(ctx) })
	loops.Go(func() { s.watch(ctx) })
	loops.Go(func() { s.finishErasures(ctx) })
	go func() {
		defer close(s.done)
		loops.Wait()
	}()
}

// Stop ends the loop of Start and waits for it.
func (s *Store) Stop() {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
}

func (s *Store) run(ctx context.Context) {
	pause, recovered := retryMin, false
	for {
		wait := poll
		n, err := s.flushOnce(ctx)
		if err == nil && !recovered {
			err = s.recover(ctx)
			recovered = err == nil
		}
		if err == nil && n == 0 {
			err = s.ask(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.health.Record(err)
			s.log.Warn("ClickHouse does not take events; retrying", zap.Error(err), zap.Duration("after", pause))
			wait, pause = pause, min(2*pause, retryMax)
		case n > 0:
			wait, pause = linger, retryMin
		default:
			pause = retryMin
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			case <-time.After(wait):
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// recover checks the tables.
func (s *Store) recover(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.health.Record(nil)
	if row, err := s.lastLeft(ctx); err == nil && row > 0 {
		s.log.Warn("PostgreSQL has events from before events.url was set, which queries do not find unless they were copied: guidon migrate-data --to clickhouse", zap.Int64("rows", row))
	}
	return nil
}

// Flush inserts the rows that are in the outbox when it is called, and returns when
// ClickHouse has them.
func (s *Store) Flush(ctx context.Context) error {
	target, err := s.lastStored(ctx)
	if err != nil {
		return err
	}
	for {
		row, err := s.Last(ctx)
		if err != nil || row >= target {
			return err
		}
		n, err := s.flushOnce(ctx)
		if err != nil {
			return err
		}
		if n == 0 { // another node has the lock
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(retryMin):
			}
		}
	}
}
