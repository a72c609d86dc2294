// Package dictionaries keeps the dictionaries that compress the properties of stored
// events on SQLite; see core/db/rowcodec.
//
// A project gets its first dictionary once it has MinEvents events. A goroutine reads
// the newest ones, trains the dictionary and stores it; events that are written later
// use it. After a month the goroutine trains another one, which replaces the first if
// it makes rows a tenth smaller. No dictionary is ever deleted: rows refer to it.
//
// PostgreSQL keeps plain text, which it compresses itself where that is long, and a Store
// does nothing there.
package dictionaries

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/rowcodec"
)

const (
	// MinEvents is how many events a project has before it gets a dictionary.
	MinEvents = 1000
	// maxAge is the age after which a better dictionary replaces one.
	maxAge = 30 * 24 * time.Hour
	// maxInterval bounds the number of events between two attempts to train.
	maxInterval = 1 << 20
)

// Source reads the stored events.
type Source interface {
	// Projects returns the projects that have events.
	Projects(ctx context.Context) ([]int64, error)
	// Samples returns at most limit of the newest events of a project. The properties of
	// those that are too long for a dictionary are empty.
	Samples(ctx context.Context, projectID int64, limit int) ([]rowcodec.Sample, error)
}

// Store keeps the dictionaries of all projects. It is safe for concurrent use.
type Store struct {
	db  *db.DB
	log *zap.Logger

	mu       sync.Mutex
	byID     map[int64]*rowcodec.Dictionary
	projects map[int64]*project
	wanted   map[int64]bool // projects that need a dictionary

	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// project is the state of the dictionary of a project.
type project struct {
	current  *rowcodec.Dictionary // nil without one
	madeAt   time.Time
	plain    int // events that were stored without a dictionary since the last attempt
	interval int // how many make the next attempt
}

// New returns a Store on d, whose schema must be migrated.
func New(d *db.DB, log *zap.Logger) *Store {
	return &Store{
		db: d, log: log, byID: map[int64]*rowcodec.Dictionary{}, projects: map[int64]*project{}, wanted: map[int64]bool{},
		wake: make(chan struct{}, 1),
	}
}

// Current returns the dictionary that new rows of a project use, nil without one. It
// reads it once.
func (s *Store) Current(ctx context.Context, projectID int64) (*rowcodec.Dictionary, error) {
	p, err := s.project(ctx, projectID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.current, nil
}

func (s *Store) project(ctx context.Context, projectID int64) (*project, error) {
	s.mu.Lock()
	p := s.projects[projectID]
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	row, err := s.readNewest(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("read the dictionary of events: %w", err)
	}
	p = &project{interval: MinEvents}
	if row != nil {
		if p.current, err = row.dictionary(); err != nil {
			s.log.Error("dictionary of events damaged; storing events without compression", zap.Int64("project_id", projectID), zap.Error(err))
		}
		p.madeAt = row.MadeAt.Time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.projects[projectID]; known != nil {
		return known, nil
	}
	s.projects[projectID] = p
	return p, nil
}

// get returns the dictionary with an id.
func (s *Store) get(ctx context.Context, id int64) (*rowcodec.Dictionary, error) {
	s.mu.Lock()
	d := s.byID[id]
	s.mu.Unlock()
	if d != nil {
		return d, nil
	}
	row, err := s.read(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read dictionary %d of events: %w", id, err)
	}
	if row == nil {
		return nil, fmt.Errorf("%w: dictionary %d is missing", rowcodec.ErrDamaged, id)
	}
	if d, err = row.dictionary(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = d
	return d, nil
}

// StoredPlain counts events of a project that were stored without a dictionary. Enough
// of them start a training in the background.
func (s *Store) StoredPlain(projectID int64, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[projectID]
	if p == nil || p.current != nil {
		return
	}
	if p.plain += events; p.plain < p.interval {
		return
	}
	p.plain, p.interval = 0, min(2*p.interval, maxInterval)
	s.wanted[projectID] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
