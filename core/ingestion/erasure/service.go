package erasure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/cluster/onenode"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/retry"
)

// Journal is the journal as erasures need it.
type Journal interface {
	Append(ctx context.Context, data []byte) (seq uint64, err error)
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error)
	Stats(ctx context.Context) (journal.Stats, error)
}

// Persons deletes the data of persons. core/persons implements it.
type Persons interface {
	// Get returns a person by its number or uuid, or NotFound.
	Get(ctx context.Context, projectID int64, ref string) (persons.Person, error)
	// Remove deletes persons with the data of all packages; see persons.Service.
	Remove(ctx context.Context, r *persons.Removal) error
}

// Service carries out erasures and knows which events they concern. It is safe
// for concurrent use. It works between Start and Stop.
type Service struct {
	db          *db.DB
	store       *store
	journal     Journal
	partitions  eventlog.Log // instead of journal; may be nil
	jobs        onenode.Jobs // of the nodes that share partitions; may be nil
	persons     Persons
	deadLetters *deadletter.Store
	log         *zap.Logger
	memory      memory
	background  retry.Service
	wake        chan struct{}
	swept       int64         // the last dead letter that was checked
	recovered   chan struct{} // closed when Recover has succeeded
	once        sync.Once     // closes recovered
	truncate    atomic.Bool   // the write-ahead log of the database holds erased data

	processing chan struct{} // holds a token while an erasure is carried out; see lockProcessing

	mu       sync.Mutex
	id       string // of the journal, "" before load
	waiting  map[string]chan error
	progress func() uint64
}

// New returns a Service that has not started, on d, whose schema must be
// migrated.
func New(d *db.DB, j Journal, p Persons, log *zap.Logger) *Service {
	return &Service{
		db: d, store: &store{d}, journal: j, persons: p, deadLetters: deadletter.NewStore(d), log: log.Named("erasure"),
		wake: make(chan struct{}, 1), processing: make(chan struct{}, 1), recovered: make(chan struct{}), waiting: map[string]chan error{},
	}
}

// pollInterval is how often the database is polled for erasures that other
// processes requested or that failed.
const pollInterval = 5 * time.Second

// sharedPollInterval is how often the node that carries out the erasures of all nodes
// polls for new ones, and the others for the end of theirs.
const sharedPollInterval = 250 * time.Millisecond

// otherNodeTimeout is how long a request waits for another node.
const otherNodeTimeout = 20 * time.Second

// Job is the name of the job that carries erasures out.
const Job = "erasures"

// RunOn makes one of the nodes that share jobs carry out the erasures of all. Two that
// carry out the same one at once would have two marks of it: an event that is accepted
// after the first has answered could be before the second. It must be called before
// Start.
func (s *Service) RunOn(jobs onenode.Jobs) { s.jobs = jobs }

// Start begins to carry out erasures. Without a database it waits for one.
func (s *Service) Start(context.Context) error {
	s.background.Start()
	if s.jobs != nil {
		onenode.Go(&s.background, s.jobs, Job, func(ctx context.Context) { s.run(ctx, ctx) })
		return nil
	}
	s.background.Go(func(drainCtx, killCtx context.Context) { s.run(drainCtx, killCtx) })
	return nil
}

// Stop finishes the erasure at hand; when ctx ends first, the next start does.
func (s *Service) Stop(ctx context.Context) error { return s.background.Stop(ctx) }

// FollowProgress sets the function that returns the number of the journal record
// up to which the pipeline has processed everything. Without it, and before the
// pipeline runs, erasures stay in memory.
func (s *Service) FollowProgress(processed func() uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = processed
}

// Erase implements persons.Recorder. The erasure is recorded when Erase fails
// with erasure_pending or because ctx ended.
func (s *Service) Erase(ctx context.Context, r persons.Removal) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make the id of an erasure: %w", err)
	}
	e := &Erasure{Removal: r, ID: id.String(), RequestedAt: time.Now().UTC().Truncate(time.Microsecond)}
	done := make(chan error, 1)
	s.mu.Lock()
	s.waiting[e.ID] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, e.ID)
	}()
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.store.insert(ctx, e); err != nil {
			return err
		}
		return activity.AddAttached(ctx)
	})
	if err != nil {
		return err
	}
	s.wakeUp()
	var polled <-chan time.Time
	if s.jobs != nil {
		ticker := time.NewTicker(sharedPollInterval)
		defer ticker.Stop()
		polled = ticker.C
	}
	for {
		select {
		case err := <-done:
			return pending(err)
		case <-polled:
			if isDone, err := s.store.isDone(ctx, e.ID); err == nil && isDone {
				return nil
			}
			if time.Since(e.RequestedAt) > otherNodeTimeout {
				return pending(errOtherNode)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errOtherNode = errors.New("the node that carries out erasures has not done it yet")

// pending is the error of an erasure that failed and is tried again; nil for nil.
func pending(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "erasure_pending",
		"The deletion is recorded. It is carried out as soon as the journal and the database can be written.").Because(err).After(pollInterval)
}

func (s *Service) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run carries out open erasures until drainCtx ends.
func (s *Service) run(drainCtx, killCtx context.Context) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: pollInterval}
	interval, kept := pollInterval, time.Time{}
	if s.jobs != nil {
		interval = sharedPollInterval
	}
	for drainCtx.Err() == nil {
		err := s.processOpen(drainCtx, killCtx)
		if err == nil && time.Since(kept) >= pollInterval-interval {
			err, kept = s.housekeep(drainCtx), time.Now()
		}
		wait := interval
		if err == nil {
			backoff.Reset()
		} else if drainCtx.Err() == nil {
			wait = backoff.Next()
			s.log.Warn("erasure delayed", zap.Error(err))
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-drainCtx.Done():
		}
		timer.Stop()
	}
}

// processOpen carries out the open erasures. One that fails does not stop the
// others.
func (s *Service) processOpen(drainCtx, killCtx context.Context) error {
	if err := s.load(drainCtx); err != nil {
		return err
	}
	open, err := s.store.open(drainCtx, 1000)
	if err != nil {
		return err
	}
	var failures []error
	for i := range open {
		if drainCtx.Err() != nil {
			return drainCtx.Err()
		}
		err := s.carryOutOpen(drainCtx, killCtx, &open[i])
		s.finish(&open[i], err)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// lockProcessing waits until no erasure is carried out; the caller calls unlock. It fails
// when ctx ends.
func (s *Service) lockProcessing(ctx context.Context) (unlock func(), err error) {
	select {
	case s.processing <- struct{}{}:
		return func() { <-s.processing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// carryOutOpen carries out an erasure that was open. Recover may have done it since.
func (s *Service) carryOutOpen(drainCtx, killCtx context.Context, e *Erasure) error {
	unlock, err := s.lockProcessing(drainCtx)
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := s.store.isDone(drainCtx, e.ID); err != nil || done {
		return err
	}
	return s.carryOut(killCtx, e)
}

// finish logs the end of an erasure and answers its request.
func (s *Service) finish(e *Erasure, err error) {
	fields := []zap.Field{zap.String("erasure", e.ID), zap.Int64("project_id", e.ProjectID), zap.Int("distinct_ids", len(e.DistinctIDs)), zap.Bool("events", e.Events)}
	if err != nil {
		s.log.Warn("erasure failed; it is tried again", append(fields, zap.Error(err))...)
	} else {
		s.log.Info("person erased", fields...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.waiting[e.ID]; done != nil {
		done <- err
		delete(s.waiting, e.ID)
	}
}

// carryOut records, remembers and deletes. Each step may be repeated.
func (s *Service) carryOut(ctx context.Context, e *Erasure) error {
	for {
		if err := s.remember(ctx, e); err != nil {
			return err
		}
		more, err := s.newIDs(ctx, e)
		if err != nil {
			return err
		}
		if len(more) == 0 {
			break
		}
		e.DistinctIDs, e.Seq = append(e.DistinctIDs, more...), 0
	}
	return s.remove(ctx, e)
}

// remove deletes the data of an erasure that every transaction knows. The lease is
// checked before, not in the transactions of the removal: another node that has it begins
// the same removal again, which finds nothing.
func (s *Service) remove(ctx context.Context, e *Erasure) error {
	if err := cluster.Fence(ctx); err != nil {
		return err
	}
	if err := s.persons.Remove(ctx, &e.Removal); err != nil {
		return err
	}
	if err := s.store.finish(ctx, e); err != nil {
		return err
	}
	s.truncate.Store(true)
	if err := s.truncateLog(ctx); err != nil {
		s.log.Warn("write-ahead log of the database not truncated after erasure", zap.Error(err))
	}
	return nil
}

// truncateLog empties the write-ahead log of the database after an erasure. If
// readers prevent it, housekeep tries again.
func (s *Service) truncateLog(ctx context.Context) error {
	if !s.truncate.Load() {
		return nil
	}
	done, err := s.db.TruncateLog(ctx)
	if done {
		s.truncate.Store(false)
	}
	return err
}

// remember appends the record to the journal, unless that was done, and writes
// the marks. When it returns, every transaction of the pipeline that does not know
// the erasure has ended.
func (s *Service) remember(ctx context.Context, e *Erasure) error {
	if s.partitions != nil {
		return s.rememberOnLog(ctx, e)
	}
	if e.Seq == 0 || e.Journal != s.journalID() {
		data, err := e.record()
		if err != nil {
			return err
		}
		if e.Seq, err = s.journal.Append(ctx, data); err != nil {
			e.Seq = 0
			return fmt.Errorf("append erasure to the journal: %w", err)
		}
		e.Journal = s.journalID()
	}
	if err := s.store.remember(ctx, s.memory.key, e, []place{{e.Journal, e.Seq}}, false); err != nil {
		return err
	}
	s.memory.publish(e)
	return nil
}

// record returns the bytes of the record of an erasure.
func (e *Erasure) record() ([]byte, error) {
	record := event.Erasure{ID: e.ID, ProjectID: e.ProjectID, DistinctIDs: e.DistinctIDs, Events: e.Events, At: e.RequestedAt}
	return record.Append(nil)
}

// newIDs returns the distinct ids that the person got since the erasure was
// requested.
func (s *Service) newIDs(ctx context.Context, e *Erasure) ([]string, error) {
	if e.PersonID == 0 {
		return nil, nil
	}
	p, err := s.persons.Get(ctx, e.ProjectID, strconv.FormatInt(e.PersonID, 10))
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(p.DistinctIDs, func(id string) bool { return slices.Contains(e.DistinctIDs, id) }), err
}

func (s *Service) journalID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// load reads the key and the marks that readers of the journal may need. It does
// nothing after it has succeeded.
func (s *Service) load(ctx context.Context) error {
	if s.journalID() != "" {
		return nil
	}
	unlock, err := s.lockProcessing(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if s.journalID() != "" {
		return nil
	}
	stats, err := s.stats(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the journal: %w", err)
	}
	key, err := s.store.key(ctx)
	if err != nil {
		return err
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.partitions == nil {
		err = s.store.marks(ctx, stats.ID, stats.First, s.memory.set)
	}
	if err != nil {
		return err
	}
	s.memory.key = key
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = stats.ID
	return nil
}

// stats returns the state of the journal, or of the first partition of the log.
func (s *Service) stats(ctx context.Context) (journal.Stats, error) {
	if s.partitions != nil {
		return s.partitions.Partition(0, 0).Stats(ctx)
	}
	return s.journal.Stats(ctx)
}

// housekeep removes erasures from memory that all readers have passed, and dead
// letters of erased persons that a sink has added since.
func (s *Service) housekeep(ctx context.Context) error {
	if s.partitions == nil {
		stats, err := s.journal.Stats(ctx)
		if err != nil {
			return fmt.Errorf("read the state of the journal: %w", err)
		}
		s.memory.prune(s.passed(stats))
	}
	if err := s.truncateLog(ctx); err != nil {
		return err
	}
	return s.sweepDeadLetters(ctx)
}

// passed returns the number of the record that every reader which filters events
// has passed.
func (s *Service) passed(stats journal.Stats) uint64 {
	s.mu.Lock()
	progress := s.progress
	s.mu.Unlock()
	if progress == nil {
		return 0
	}
	low := min(progress(), uint64(math.MaxInt64))
	for _, r := range stats.Readers {
		if strings.HasPrefix(r.Name, "follower/") || strings.Contains(r.Name, deadletter.SourceSink) {
			low = min(low, r.Position.Seq)
		}
	}
	return low
}

// sweepDeadLetters deletes the dead letters added since the last sweep whose
// events belong to erased persons: a sink may reject an event after the erasure
// that was accepted before it.
func (s *Service) sweepDeadLetters(ctx context.Context) error {
	for {
		list, err := s.deadLetters.After(ctx, s.swept, 500)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			e := &list[i]
			v, err := s.VerdictAt(ctx, e.ProjectID, e.DistinctID, e.ReceivedAt)
			if err != nil {
				return err
			}
			if v == DropData {
				if err := s.deadLetters.Remove(ctx, e.ID); err != nil {
					return err
				}
			}
			s.swept = e.ID
		}
	}
}
