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
	writer       writer
	store        store
	history      historyStore
	dictionaries *dictionaries.Store
	scan         scanBudget
	stored       prometheus.Counter
	repeated     prometheus.Counter
}

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *Service {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "events", Name: name, Help: help})
	}
	log = log.Named("events")
	dicts := dictionaries.New(d, log)
	return &Service{
		cfg: cfg, db: d, log: log, writer: newWriter(d), dictionaries: dicts,
		store: store{db: d, dictionaries: dicts}, history: historyStore{d, dicts}, scan: defaultScan,
		stored:   counter("stored_total", "Events written to the event store."),
		repeated: counter("repeated_total", "Events not written because their uuid is there already."),
	}
}

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
		if fresh, err = s.writer.insert(ctx, rows.list); err != nil {
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

// row is an event to be written.
type row struct {
	ev         *sdk.Event
	uuid       uuid.UUID
	person     uuid.UUID
	hasPerson  bool
	columns    columns
	properties string // empty if they are compressed
	compressed []byte
}

// storedProperties is the value of the column.
func (r *row) storedProperties() any {
	if r.compressed != nil {
		return r.compressed
	}
	return r.properties
}

func (r *row) fill(p *fastjson.Parser, ev *sdk.Event) (err error) {
	*r = row{ev: ev, columns: readColumns(p, ev)}
	if r.uuid, err = uuid.Parse(ev.UUID); err != nil {
		return fmt.Errorf("store event %q: %w", ev.UUID, err)
	}
	if ev.PersonID != "" {
		if r.person, err = uuid.Parse(ev.PersonID); err != nil {
			return fmt.Errorf("store event %s of person %q: %w", ev.UUID, ev.PersonID, err)
		}
		r.hasPerson = true
	}
	return nil
}

// rows are the buffers of one call of Store.
type rows struct {
	list    []row
	parser  fastjson.Parser
	encoder dictionaries.Encoder
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

func getRows(n int) *rows {
	r := rowsPool.Get().(*rows)
	if cap(r.list) < n {
		r.list = make([]row, n)
	}
	r.list = r.list[:n]
	return r
}

func (r *rows) release() {
	clear(r.list)
	rowsPool.Put(r)
}
