package events

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fastjson"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/dictionaries"
	"github.com/guidonhq/guidon/sdk"
)

// Service is the event store. It is safe for concurrent use.
type Service struct {
	cfg          Config
	db           *db.DB
	log          *zap.Logger
	backend      Backend
	shared       *Shared
	dictionaries *dictionaries.Store // nil with another backend than the database
	scan         scanBudget
	stored       prometheus.Counter
	repeated     prometheus.Counter
}

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *Service {
	log = log.Named("events")
	dicts := dictionaries.New(d, log)
	shared := NewShared(d)
	s := NewOn(newSQLBackend(d, dicts, shared), shared, cfg, d, log, reg)
	s.dictionaries = dicts
	return s
}

// NewOn is New with the events in b and the rest in d, of which shared is a part.
func NewOn(b Backend, shared *Shared, cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *Service {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "events", Name: name, Help: help})
	}
	return &Service{
		cfg: cfg, db: d, log: log, backend: b, shared: shared, scan: defaultScan,
		stored:   counter("stored_total", "Events written to the event store."),
		repeated: counter("repeated_total", "Events not written because their uuid is there already."),
	}
}

// Backend returns where the events are.
func (s *Service) Backend() Backend { return s.backend }

// Status returns the state of a backend that can fail on its own; false for the database.
func (s *Service) Status() (any, bool) {
	if b, ok := s.backend.(StatusReporter); ok {
		return b.Status(), true
	}
	return nil, false
}

// OnRefused sets what keeps an event that the backend refuses after it was accepted.
func (s *Service) OnRefused(f func(context.Context, *sdk.Event, string) error) { s.shared.Refused = f }

// Process stores the events of batch that are not stored yet and returns their
// number. It joins the transaction in ctx, or makes one.
func (s *Service) Process(ctx context.Context, batch []*sdk.Event) (int, error) {
	fresh, err := s.Store(ctx, batch)
	n := 0
	for _, isNew := range fresh {
		if isNew {
			n++
		}
	}
	return n, err
}

// Store is Process for callers that need to know which events are new. It
// returns one value per event, false if its project and uuid are stored already
// or occur earlier in the batch.
func (s *Service) Store(ctx context.Context, batch []*sdk.Event) ([]bool, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	rows := getRows(len(batch))
	defer rows.release()
	for i, ev := range batch {
		if err := rows.list[i].fill(&rows.parser, ev); err != nil {
			return nil, err
		}
	}
	plain, err := s.encodeProperties(ctx, rows)
	if err != nil {
		return nil, fmt.Errorf("store events: %w", err)
	}
	var fresh []bool
	err = s.db.Tx(ctx, func(ctx context.Context) (err error) {
		if fresh, err = s.backend.Insert(ctx, rows.list); err != nil {
			return fmt.Errorf("store events: %w", err)
		}
		s.db.AfterCommit(ctx, func() {
			s.recordStored(fresh)
			for project, n := range plain {
				s.dictionaries.StoredPlain(project, n)
			}
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fresh, nil
}

func (s *Service) recordStored(fresh []bool) {
	n := 0
	for _, isNew := range fresh {
		if isNew {
			n++
		}
	}
	s.stored.Add(float64(n))
	s.repeated.Add(float64(len(fresh) - n))
}

// Insertion is an event to be written.
type Insertion struct {
	Event      *sdk.Event
	UUID       uuid.UUID
	Person     uuid.UUID // of the person at the time
	HasPerson  bool
	Columns    Columns
	Properties string // the text, empty if they are compressed
	compressed []byte
}

// storedProperties is the value of the column.
func (r *Insertion) storedProperties() any {
	if r.compressed != nil {
		return r.compressed
	}
	return r.Properties
}

func (r *Insertion) fill(p *fastjson.Parser, ev *sdk.Event) (err error) {
	*r = Insertion{Event: ev, Columns: readColumns(p, ev)}
	if r.UUID, err = uuid.Parse(ev.UUID); err != nil {
		return fmt.Errorf("store event %q: %w", ev.UUID, err)
	}
	if ev.PersonID != "" {
		if r.Person, err = uuid.Parse(ev.PersonID); err != nil {
			return fmt.Errorf("store event %s of person %q: %w", ev.UUID, ev.PersonID, err)
		}
		r.HasPerson = true
	}
	return nil
}

// rows are the buffers of one call of Store.
type rows struct {
	list    []Insertion
	parser  fastjson.Parser
	encoder dictionaries.Encoder
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

func getRows(n int) *rows {
	r := rowsPool.Get().(*rows)
	if cap(r.list) < n {
		r.list = make([]Insertion, n)
	}
	r.list = r.list[:n]
	return r
}

func (r *rows) release() {
	clear(r.list)
	rowsPool.Put(r)
}
