package erasure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster/onenode"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
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
	id       string                  // of the journal, "" before load
	waiting  map[string][]chan error // of requests, by erasure
	progress func() uint64
}

// New returns a Service that has not started, on d, whose schema must be
// migrated.
func New(d *db.DB, j Journal, p Persons, log *zap.Logger) *Service {
	return &Service{
		db: d, store: &store{d}, journal: j, persons: p, deadLetters: deadletter.NewStore(d), log: log.Named("erasure"),
		wake: make(chan struct{}, 1), processing: make(chan struct{}, 1), recovered: make(chan struct{}), waiting: map[string][]chan error{},
	}
}

// pollInterval is how often the database is polled for erasures that other
// processes requested or that failed.
const pollInterval = 5 * time.Second

// sharedPollInterval is how often the node that carries out the erasures of all nodes
// polls for new ones, and the others for the end of theirs.
const sharedPollInterval = 250 * time.Millisecond

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
		s.background.Every(sharedPollInterval, s.answerDone)
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
