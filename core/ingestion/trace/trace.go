// Package trace answers "where is my event?".
//
// A trace puts together what the server knows of one event: the stored event, its
// place in the journal, the notices of its decoding, its dead letters, and how far
// the pipeline and each sink are. The event is found in the journal by the time of
// its arrival, which the store, a dead letter or a version 7 uuid tells; without
// one the newest part of the journal is searched. A log in partitions is searched
// from the partition of the distinct id on, if that is known.
//
// A trace reads only. It is for support, not for a hot path.
package trace

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// EventReader is the event store as a trace needs it.
type EventReader interface {
	// Get returns a stored event, or NotFound.
	Get(ctx context.Context, projectID int64, uuid string) (sdk.Event, error)
}

// Actions finds the actions that an event matches.
type Actions interface {
	// Matching returns the actions, as they are defined now, that match ev.
	Matching(ctx context.Context, ev *sdk.Event) ([]ActionRef, error)
}

// ActionRef names an action.
type ActionRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Trace describes one event between its acceptance and its deliveries.
type Trace struct {
	UUID       string     `json:"uuid"`
	State      string     `json:"state"` // stored, waiting, dropped, dead_letter or forgotten
	Event      string     `json:"event"`
	DistinctID string     `json:"distinct_id"`
	PersonID   *string    `json:"person_id"`
	Stored     bool       `json:"stored"`
	ReceivedAt *time.Time `json:"received_at"`
	Accepted   *Place     `json:"accepted"` // null when the journal no longer holds the event
	// Actions match the event as they are defined now; null when the event is not
	// stored or the actions are unknown.
	Actions []ActionRef `json:"actions"`
	// Notices are the drop and the changes of the event.
	Notices []Notice `json:"notices"`
	// Worker and Sinks are the progress of the readers; null without a place.
	Worker *Reader  `json:"worker"`
	Sinks  []Reader `json:"sinks"`
	// DeadLetters are those of this event.
	DeadLetters []deadletter.Entry `json:"dead_letters"`
}

// Place is where an event is in the journal.
type Place struct {
	At         time.Time `json:"at"`
	Partition  *int      `json:"partition,omitempty"` // of a log in partitions
	JournalSeq uint64    `json:"journal_seq"`
	Index      uint32    `json:"index"` // of the item in its request, from 0
	Historical bool      `json:"historical_migration"`
}

// Notice is a notice of the decoder in the answer.
type Notice struct {
	Type    string         `json:"type"`
	Dropped bool           `json:"dropped"`
	Details map[string]any `json:"details,omitempty"`
}

// Reader is the progress of a reader of the journal with the event.
type Reader struct {
	Name  string `json:"name"`
	State string `json:"state"` // done, skipped, waiting or dead_letter
	// Reason is why a sink skipped the event: event, project, property or sample for its
	// filters, as they are now, or no_events if it has not been sent any event.
	Reason string `json:"reason,omitempty"`
	// Before is the number of records that a waiting reader processes first.
	Before int64 `json:"records_before"`
	// Error is that of the dead letter, or the latest one of a blocked reader.
	Error string `json:"error,omitempty"`
}

// Tracer traces events.
type Tracer struct {
	limits      event.Limits
	deadLetters *deadletter.Store
	log         reader.Log
	partitions  eventlog.Log // instead of log; may be nil
	events      EventReader
	actions     Actions
	worker      func(partition int) *pipeline.Worker
	delivery    delivery.Deliveries
	erasures    Erasures
	skipReason  func(ctx context.Context, sink string, ev *sdk.Event) string // nil: not known
}

// Erasures knows the persons that were erased. erasure.Service implements it.
type Erasures interface {
	// VerdictAt returns what becomes of an event that was received at a time.
	VerdictAt(ctx context.Context, projectID int64, distinctID string, received time.Time) (erasure.Verdict, error)
}

// NewTracer returns a Tracer. events may be nil: then traces lack the stored
// event.
func NewTracer(limits event.Limits, d *db.DB, log reader.Log, events EventReader) *Tracer {
	return &Tracer{limits: limits, deadLetters: deadletter.NewStore(d), log: log, events: events}
}

// WithActions adds the matching actions to traces; nil adds none.
func (t *Tracer) WithActions(a Actions) *Tracer {
	t.actions = a
	return t
}

// WithReaders adds the errors of blocked readers to traces; either may be nil.
func (t *Tracer) WithReaders(w *pipeline.Worker, d delivery.Deliveries) *Tracer {
	t.worker, t.delivery = func(int) *pipeline.Worker { return w }, d
	return t
}

// WithPartitions makes traces search a log in partitions. worker returns the worker of
// a partition, or nil if another node has it; then the error of a blocked worker is not
// known.
func (t *Tracer) WithPartitions(l eventlog.Log, worker func(partition int) *pipeline.Worker) *Tracer {
	t.partitions, t.worker = l, worker
	return t
}

// WithFilters adds why the filters of sinks leave events out: reason returns it, or "". It is
// called for stored events.
func (t *Tracer) WithFilters(reason func(ctx context.Context, sink string, ev *sdk.Event) string) *Tracer {
	t.skipReason = reason
	return t
}

// WithErasures leaves out the events of persons that were erased with their
// events; nil leaves out none.
func (t *Tracer) WithErasures(e Erasures) *Tracer {
	t.erasures = e
	return t
}

// isErased reports whether the event was erased: the journal may still hold it.
func (t *Tracer) isErased(ctx context.Context, projectID int64, out *Trace) (bool, error) {
	if t.erasures == nil || out.Stored || out.ReceivedAt == nil {
		return false, nil
	}
	v, err := t.erasures.VerdictAt(ctx, projectID, out.DistinctID, *out.ReceivedAt)
	return v == erasure.DropData, err
}

// Trace returns the trace of an event, or NotFound.
func (t *Tracer) Trace(ctx context.Context, projectID int64, id string) (*Trace, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return nil, errNoTrace
	}
	out := &Trace{UUID: parsed.String(), State: "forgotten", Notices: []Notice{}, Sinks: []Reader{}}
	ev, err := t.addStored(ctx, projectID, out)
	if err != nil {
		return nil, err
	}
	if out.DeadLetters, err = t.deadLetters.OfEvent(ctx, projectID, out.UUID); err != nil {
		return nil, err
	}
	for _, e := range out.DeadLetters {
		if out.ReceivedAt == nil {
			out.ReceivedAt, out.Event, out.DistinctID = &e.ReceivedAt, e.Event, e.DistinctID
		}
	}
	stats, err := t.locateIn(ctx, projectID, parsed, out)
	if err != nil {
		return nil, err
	}
	if out.Accepted == nil && !out.Stored && len(out.DeadLetters) == 0 {
		return nil, errNoTrace
	}
	if erased, err := t.isErased(ctx, projectID, out); erased || err != nil {
		return nil, cmp.Or(err, error(errNoTrace))
	}
	if out.Accepted != nil {
		out.addReaders(stats)
		t.addSkipReasons(ctx, ev, out)
	}
	out.setFinalState()
	return out, t.addReaderErrors(ctx, out)
}

var errNoTrace = fault.New(fault.NotFound, "not_found",
	"There is no trace of this event: it was not accepted here, or so long ago that the journal has let go of it.")

// addStored fills in the stored event and returns it, nil if there is none.
func (t *Tracer) addStored(ctx context.Context, projectID int64, out *Trace) (*sdk.Event, error) {
	if t.events == nil {
		return nil, nil
	}
	ev, err := t.events.Get(ctx, projectID, out.UUID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out.Stored, out.Event, out.DistinctID, out.ReceivedAt = true, ev.Name, ev.DistinctID, &ev.ReceivedAt
	if ev.PersonID != "" {
		out.PersonID = &ev.PersonID
	}
	out.Actions = t.matchingActions(ctx, &ev)
	return &ev, nil
}

// matchingActions returns the actions that match the event. A failed lookup does
// not fail the trace.
func (t *Tracer) matchingActions(ctx context.Context, ev *sdk.Event) []ActionRef {
	if t.actions == nil {
		return nil
	}
	found, err := t.actions.Matching(ctx, ev)
	if err != nil {
		return nil
	}
	return append([]ActionRef{}, found...)
}

// setFinalState marks the readers with dead letters and sets the state.
func (out *Trace) setFinalState() {
	failed := "" // error of the worker's dead letter
	for _, e := range out.DeadLetters {
		if e.Source == deadletter.SourceWorker {
			failed = e.Message
		}
		for i := range out.Sinks {
			if e.Source == deadletter.SourceSink+out.Sinks[i].Name {
				out.Sinks[i].State, out.Sinks[i].Reason, out.Sinks[i].Error = "dead_letter", "", e.Message
			}
		}
	}
	if out.Stored && out.Worker != nil { // its cursor in a shared log is up to a second behind
		out.Worker.State, out.Worker.Before = "done", 0
	}
	if failed != "" && out.Worker != nil {
		out.Worker.State, out.Worker.Error = "dead_letter", failed
	}
	switch {
	case out.Stored:
		out.State = "stored"
	case failed != "":
		out.State = "dead_letter"
	case len(out.Notices) > 0 && out.Notices[len(out.Notices)-1].Dropped:
		out.State = "dropped"
	case out.Worker != nil && out.Worker.State == "waiting":
		out.State = "waiting"
	}
}

// addSkipReasons marks the sinks whose filters leave out the stored event; ev may be nil.
func (t *Tracer) addSkipReasons(ctx context.Context, ev *sdk.Event, out *Trace) {
	if ev == nil || t.skipReason == nil {
		return
	}
	for i := range out.Sinks {
		s := &out.Sinks[i]
		if s.State == "waiting" {
			continue
		}
		if reason := t.skipReason(ctx, s.Name, ev); reason != "" {
			s.State, s.Reason = "skipped", reason
		}
	}
}

// addReaderErrors fills in why waiting readers are blocked.
func (t *Tracer) addReaderErrors(ctx context.Context, out *Trace) error {
	if w := out.Worker; w != nil && w.State == "waiting" {
		w.Error = t.workerError(out.Accepted)
	}
	if t.delivery == nil {
		return nil
	}
	status, err := t.delivery.Status(ctx)
	if err != nil {
		return err
	}
	for i := range out.Sinks {
		s := &out.Sinks[i]
		for j := range status {
			if status[j].Sink == s.Name && s.State == "waiting" && status[j].Blocked() {
				s.Error = cmp.Or(status[j].LastError, status[j].State)
			}
		}
	}
	return nil
}

// workerError returns why the worker that processes the event is blocked, or "".
func (t *Tracer) workerError(at *Place) string {
	partition := 0
	if at.Partition != nil {
		partition = *at.Partition
	}
	if t.worker == nil || t.worker(partition) == nil {
		return ""
	}
	status := t.worker(partition).Status()
	if at.Historical {
		status = t.worker(partition).HistoricalStatus()
	}
	if status.Waiting == nil {
		return ""
	}
	return pipeline.PublicReason(status.Waiting)
}

// addReaders compares the event's place with the cursors.
func (out *Trace) addReaders(stats journal.Stats) {
	behind := journal.Position{Seq: out.Accepted.JournalSeq - 1, Index: out.Accepted.Index + 1}
	lane := pipeline.LiveReader
	if out.Accepted.Historical {
		lane = pipeline.HistoricalReader
	}
	imports := map[string]Reader{} // by sink
	for _, r := range stats.Readers {
		one := Reader{Name: r.Name, State: "done"}
		if r.Position.Before(behind) {
			one.State, one.Before = "waiting", int64(out.Accepted.JournalSeq-r.Position.Seq)-1
		}
		if name, ok := strings.CutPrefix(r.Name, deadletter.SourceSink); ok {
			one.Name = name
			if one.State == "done" && r.Position.Count == 0 { // it counts the events that the sink was sent
				one.State, one.Reason = "skipped", "no_events"
			}
			out.Sinks = append(out.Sinks, one)
		} else if r.Name == lane {
			out.Worker = &one
		} else if name, ok := strings.CutPrefix(r.Name, delivery.HistoricalReader("")); ok && out.Accepted.Historical {
			one.Name = name
			imports[name] = one
		}
	}
	for i := range out.Sinks { // an import has its own cursor while it lasts
		if one, ok := imports[out.Sinks[i].Name]; ok {
			out.Sinks[i] = one
		}
	}
}
