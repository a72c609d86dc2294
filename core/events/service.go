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
	"github.com/guidonhq/guidon/sdk"
)

// Service is the event store. Its methods may be called from any number of
// goroutines.
type Service struct {
	cfg      Config
	db       *db.DB
	log      *zap.Logger
	write    writer
	stored   prometheus.Counter
	repeated prometheus.Counter
}

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *Service {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "events", Name: name, Help: help})
	}
	return &Service{
		cfg: cfg, db: d, log: log.Named("events"), write: newWriter(d),
		stored:   counter("stored_total", "Events written to the event store."),
		repeated: counter("repeated_total", "Events not written because their uuid is there already."),
	}
}

// Process stores the events of batch that are not there yet and returns how
// many that were. It joins the transaction in ctx, or makes one.
func (s *Service) Process(ctx context.Context, batch []*sdk.Event) (int, error) {
	fresh, err := s.Store(ctx, batch)
	n := 0
	for _, is := range fresh {
		if is {
			n++
		}
	}
	return n, err
}

// Store is Process for callers that need to know which events are new: it
// returns one answer an event, false for those whose project and uuid are
// stored already or stand earlier in the batch.
func (s *Service) Store(ctx context.Context, batch []*sdk.Event) ([]bool, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	rows := takeRows(len(batch))
	defer rows.release()
	for i, ev := range batch {
		if err := rows.list[i].read(&rows.parser, ev); err != nil {
			return nil, err
		}
	}
	var fresh []bool
	err := s.db.Tx(ctx, func(ctx context.Context) (err error) {
		if fresh, err = s.write.insert(ctx, rows.list); err != nil {
			return fmt.Errorf("store events: %w", err)
		}
		s.db.AfterCommit(ctx, func() { s.count(fresh) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fresh, nil
}

func (s *Service) count(fresh []bool) {
	n := 0
	for _, is := range fresh {
		if is {
			n++
		}
	}
	s.stored.Add(float64(n))
	s.repeated.Add(float64(len(fresh) - n))
}

// row is an event as it is written.
type row struct {
	ev         *sdk.Event
	uuid       uuid.UUID
	person     uuid.UUID
	hasPerson  bool
	properties string
	hot        hot
}

func (r *row) read(p *fastjson.Parser, ev *sdk.Event) (err error) {
	*r = row{ev: ev, properties: string(ev.Properties), hot: readHot(p, ev)}
	if r.properties == "" {
		r.properties = "{}"
	}
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

// rows is the memory of one call of Store.
type rows struct {
	list   []row
	parser fastjson.Parser
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

func takeRows(n int) *rows {
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
