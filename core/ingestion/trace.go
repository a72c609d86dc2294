package ingestion

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Lookup is the event store as a trace needs it.
type Lookup interface {
	// Get returns a stored event, or NotFound.
	Get(ctx context.Context, projectID int64, uuid string) (sdk.Event, error)
}

// Actions knows which of a project's actions an event is.
type Actions interface {
	// Matching returns the actions, as they are defined now, that ev fits.
	Matching(ctx context.Context, ev *sdk.Event) ([]ActionRef, error)
}

// ActionRef names an action.
type ActionRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Trace answers "where is my event?": what is known of one event between its
// acceptance and its deliveries.
type Trace struct {
	UUID       string      `json:"uuid"`
	State      string      `json:"state"` // stored, waiting, dropped, dead_letter or forgotten
	Event      string      `json:"event"`
	DistinctID string      `json:"distinct_id"`
	PersonID   *string     `json:"person_id"`
	Stored     bool        `json:"stored"`
	ReceivedAt *time.Time  `json:"received_at"`
	Accepted   *TracePlace `json:"accepted"` // null when the journal has let go of it
	// Actions are those the event is, as they are defined now; null when the
	// event is not stored or nobody can tell.
	Actions []ActionRef `json:"actions"`
	// Notices say what was dropped or changed, and why.
	Notices []TraceNotice `json:"notices"`
	// Worker and Sinks are how far they are; null without a place.
	Worker *TraceReader  `json:"worker"`
	Sinks  []TraceReader `json:"sinks"`
	// DeadLetters are those of this event.
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// TracePlace is where an event is in the journal.
type TracePlace struct {
	At         time.Time `json:"at"`
	JournalSeq uint64    `json:"journal_seq"`
	Index      uint32    `json:"index"` // its place in the request, from 0
	Historical bool      `json:"historical_migration"`
}

// TraceNotice is a notice as people see it.
type TraceNotice struct {
	Type    string         `json:"type"`
	Dropped bool           `json:"dropped"`
	Details map[string]any `json:"details,omitempty"`
}

// TraceReader is how far a reader of the journal is with the event.
type TraceReader struct {
	Name  string `json:"name"`
	State string `json:"state"` // done, waiting or dead_letter
	// Before is how many records it has to do first, when it is waiting.
	Before int64 `json:"records_before"`
	// Error is why the event was set aside, or what a reader in trouble was last
	// told.
	Error string `json:"error,omitempty"`
}

// Tracer finds out what became of events.
type Tracer struct {
	store   *store
	log     Log
	lookup  Lookup
	actions Actions
	decoder event.Limits
	worker  *Worker
	deliver *Deliver
}

// NewTracer returns a Tracer. lookup may be nil: then it does not know what is
// stored.
func NewTracer(cfg Config, d *db.DB, log Log, lookup Lookup) *Tracer {
	return &Tracer{store: &store{d}, log: log, lookup: lookup, decoder: cfg.Limits}
}

// WithActions has traces tell which actions an event is; a may be nil.
func (t *Tracer) WithActions(a Actions) *Tracer {
	t.actions = a
	return t
}

// WithReaders has traces tell what is wrong with readers that wait; either may
// be nil.
func (t *Tracer) WithReaders(w *Worker, d *Deliver) *Tracer {
	t.worker, t.deliver = w, d
	return t
}

// Trace returns what is known of the event, or NotFound when nothing is.
func (t *Tracer) Trace(ctx context.Context, projectID int64, id string) (*Trace, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return nil, errNoTrace
	}
	out := &Trace{UUID: parsed.String(), State: "forgotten", Notices: []TraceNotice{}, Sinks: []TraceReader{}}
	if err := t.stored(ctx, projectID, out); err != nil {
		return nil, err
	}
	if out.DeadLetters, _, err = t.store.letters(ctx, projectID, LetterFilter{EventUUID: out.UUID}, 100, 0); err != nil {
		return nil, err
	}
	for _, l := range out.DeadLetters {
		if out.ReceivedAt == nil {
			out.ReceivedAt, out.Event, out.DistinctID = &l.ReceivedAt, l.Event, l.DistinctID
		}
	}
	stats, err := t.log.Stats(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.locate(ctx, projectID, parsed, stats, out); err != nil {
		return nil, err
	}
	if out.Accepted == nil && !out.Stored && len(out.DeadLetters) == 0 {
		return nil, errNoTrace
	}
	out.conclude(stats)
	return out, t.troubles(ctx, out)
}

var errNoTrace = fault.New(fault.NotFound, "not_found",
	"There is no trace of this event: it was not accepted here, or so long ago that the journal has let go of it.")

// stored fills in what the event store has.
func (t *Tracer) stored(ctx context.Context, projectID int64, out *Trace) error {
	if t.lookup == nil {
		return nil
	}
	ev, err := t.lookup.Get(ctx, projectID, out.UUID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	out.Stored, out.Event, out.DistinctID, out.ReceivedAt = true, ev.Name, ev.DistinctID, &ev.ReceivedAt
	if ev.PersonID != "" {
		out.PersonID = &ev.PersonID
	}
	out.Actions = t.matching(ctx, &ev)
	return nil
}

// matching is what actions say of the event. That they cannot say anything is
// no reason to tell nothing at all.
func (t *Tracer) matching(ctx context.Context, ev *sdk.Event) []ActionRef {
	if t.actions == nil {
		return nil
	}
	found, err := t.actions.Matching(ctx, ev)
	if err != nil {
		return nil
	}
	return append([]ActionRef{}, found...)
}

// conclude says how far the readers are, and what it all amounts to.
func (out *Trace) conclude(stats journal.Stats) {
	if out.Accepted != nil {
		out.readers(stats)
	}
	buried := ""
	for _, l := range out.DeadLetters {
		if l.Source == sourceWorker {
			buried = l.Message
		}
		for i := range out.Sinks {
			if l.Source == sourceSink+out.Sinks[i].Name {
				out.Sinks[i].State, out.Sinks[i].Error = "dead_letter", l.Message
			}
		}
	}
	if buried != "" && out.Worker != nil {
		out.Worker.State, out.Worker.Error = "dead_letter", buried
	}
	switch {
	case out.Stored:
		out.State = "stored"
	case buried != "":
		out.State = "dead_letter"
	case len(out.Notices) > 0 && out.Notices[len(out.Notices)-1].Dropped:
		out.State = "dropped"
	case out.Worker != nil && out.Worker.State == "waiting":
		out.State = "waiting"
	}
}

// troubles says why the readers that wait do.
func (t *Tracer) troubles(ctx context.Context, out *Trace) error {
	if w := out.Worker; w != nil && w.State == "waiting" && t.worker != nil {
		status := t.worker.Status()
		if out.Accepted.Historical {
			status = t.worker.Historical()
		}
		if status.Waiting != nil {
			w.Error = publicCause(status.Waiting)
		}
	}
	if t.deliver == nil {
		return nil
	}
	status, err := t.deliver.Status(ctx)
	if err != nil {
		return err
	}
	for i := range out.Sinks {
		s := &out.Sinks[i]
		for j := range status {
			if status[j].Sink == s.Name && s.State == "waiting" && status[j].held() {
				s.Error = cmp.Or(status[j].LastError, status[j].State)
			}
		}
	}
	return nil
}

// readers compares the event's place with the cursors.
func (out *Trace) readers(stats journal.Stats) {
	behind := journal.Position{Seq: out.Accepted.JournalSeq - 1, Index: out.Accepted.Index + 1}
	lane := liveReader
	var imports []TraceReader
	if out.Accepted.Historical {
		lane = historicalReader
	}
	for _, r := range stats.Readers {
		one := TraceReader{Name: r.Name, State: "done"}
		if r.Position.Before(behind) {
			one.State, one.Before = "waiting", int64(out.Accepted.JournalSeq-r.Position.Seq)-1
		}
		if name, ok := strings.CutPrefix(r.Name, sourceSink); ok {
			one.Name = name
			out.Sinks = append(out.Sinks, one)
		} else if r.Name == lane {
			out.Worker = &one
		} else if name, ok := strings.CutPrefix(r.Name, sourcePast+sourceSink); ok && out.Accepted.Historical {
			one.Name = name
			imports = append(imports, one)
		}
	}
	for i := range out.Sinks { // imports have a walk of their own while there are any
		for _, one := range imports {
			if one.Name == out.Sinks[i].Name {
				out.Sinks[i] = one
			}
		}
	}
}
