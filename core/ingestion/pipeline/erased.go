package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/sdk"
)

// Erased knows the persons that were erased after their events were accepted.
// erasure.Service implements it.
type Erased interface {
	// Recover carries out the erasures that the journal holds behind a record and
	// that the database does not know; false when ctx ends first.
	Recover(ctx context.Context, after uint64) bool
	// Begin marks the begin of a transaction; its caller calls end after it.
	Begin() (end func())
	// Concerns reports whether any erasure of the project is unprocessed, between
	// Begin and end.
	Concerns(projectID int64) bool
	// Verdict returns what becomes of an event of the record with this number,
	// between Begin and end.
	Verdict(projectID int64, distinctID string, seq uint64) erasure.Verdict
	// VerdictAt is Verdict for an event without a record, by its time.
	VerdictAt(ctx context.Context, projectID int64, distinctID string, received time.Time) (erasure.Verdict, error)
}

// loader is an Erased of which each transaction reads what concerns it.
// erasure.Partition implements it.
type loader interface {
	Load(ctx context.Context, after uint64) (*erasure.Loaded, error)
}

// locker is an Erased that erasures on other nodes wait for.
type locker interface {
	Lock(ctx context.Context) error
}

// scanner is an Erased that reads the log ahead of the live lane for erasures, so that the
// next owner of the partition has less to read. erasure.Partition implements it.
type scanner interface {
	FollowCursor(c erasure.Cursor)
	ScanAhead(ctx context.Context)
}

// liveCursor is the cursor of the live lane, for a scanner.
type liveCursor struct{ *lane }

// ProcessedSeq implements erasure.Cursor.
func (c liveCursor) ProcessedSeq() uint64 { return c.status.Load().Position.Seq }

// StoredSeq implements erasure.Cursor.
func (c liveCursor) StoredSeq(ctx context.Context) (uint64, error) {
	row, found, err := c.store.loadCursor(ctx, c.name+c.suffix)
	if err != nil || !found || row.journal != c.journalID {
		return 0, err
	}
	return row.position.Seq, nil
}

// scanAhead runs the scanner of the live lane until ctx ends.
func (l *lane) scanAhead(ctx context.Context) {
	if s, ok := l.erased.(scanner); ok && !l.historical {
		s.ScanAhead(ctx)
	}
}

// loadErased returns what the transaction of ctx must know of erasures, for records
// behind a number. e may be nil.
func loadErased(ctx context.Context, e Erased, after uint64) (Erased, error) {
	switch e := e.(type) {
	case loader:
		return e.Load(ctx, after)
	case locker:
		if err := e.Lock(ctx); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// RespectErasures makes the worker, its replays and its followers drop the events
// of persons that were erased after the events were accepted. It must be called
// before Start.
func (w *Worker) RespectErasures(e Erased) { w.erased = e }

// Processed returns the number of the journal record up to which both lanes have
// processed everything.
func (w *Worker) Processed() uint64 {
	return min(w.live.status.Load().Position.Seq, w.historical.status.Load().Position.Seq)
}

// filterErased returns the events that may be processed, and those of them that
// must not create a person. place[i] is the index of events[i] in b.
func (s *stageRunner) filterErased(b *reader.Batch, events []*sdk.Event, place []int) ([]*sdk.Event, map[*sdk.Event]bool) {
	if s.known == nil {
		return events, nil
	}
	var detached map[*sdk.Event]bool
	kept := events[:0]
	for i, ev := range events {
		switch s.verdict(ev, b.Record(place[i])) {
		case erasure.DropData:
			continue
		case erasure.Detach:
			if detached == nil {
				detached = map[*sdk.Event]bool{}
			}
			detached[ev] = true
		case erasure.Keep:
		}
		kept = append(kept, ev)
	}
	return kept, detached
}

// verdict returns what becomes of an event. An event that would give the distinct
// id of an erased person to another one is stored without a person.
func (s *stageRunner) verdict(ev *sdk.Event, seq uint64) erasure.Verdict {
	if !s.known.Concerns(ev.ProjectID) {
		return erasure.Keep
	}
	v := s.known.Verdict(ev.ProjectID, ev.DistinctID, seq)
	property := ""
	switch ev.Name {
	case "$identify":
		property = "$anon_distinct_id"
	case "$create_alias", "$merge_dangerously":
		property = "alias"
	}
	if v != erasure.Keep || property == "" {
		return v
	}
	other := fastjson.GetString(ev.Properties, property)
	if s.known.Verdict(ev.ProjectID, other, seq) != erasure.Keep {
		return erasure.Detach
	}
	return erasure.Keep
}

// isDropped reports whether the event at i was erased.
func isDropped(e Erased, b *reader.Batch, i int) bool {
	ev := &b.Events[i]
	return e != nil && e.Verdict(ev.ProjectID, ev.DistinctID, b.Record(i)) == erasure.DropData
}

// checkReplay returns whether the event of a dead letter may be processed, and the
// context for its stages.
func (s *stageRunner) checkReplay(ctx context.Context, ev *sdk.Event) (context.Context, bool, error) {
	if s.erased == nil {
		return ctx, true, nil
	}
	v, err := s.erased.VerdictAt(ctx, ev.ProjectID, ev.DistinctID, ev.ReceivedAt)
	if err != nil {
		return ctx, false, fmt.Errorf("look for erasures: %w", err)
	}
	if v == erasure.Detach {
		ctx = withDetached(ctx, map[*sdk.Event]bool{ev: true})
	}
	return ctx, v != erasure.DropData, nil
}

type detachedKey struct{}

// withDetached marks the events of a batch that are stored without a person.
func withDetached(ctx context.Context, detached map[*sdk.Event]bool) context.Context {
	if len(detached) == 0 {
		return ctx
	}
	return context.WithValue(ctx, detachedKey{}, detached)
}

// attached returns the events of a batch that are not marked by withDetached.
func attached(ctx context.Context, batch []*sdk.Event) []*sdk.Event {
	detached, _ := ctx.Value(detachedKey{}).(map[*sdk.Event]bool)
	if len(detached) == 0 {
		return batch
	}
	out := make([]*sdk.Event, 0, len(batch))
	for _, ev := range batch {
		if !detached[ev] {
			out = append(out, ev)
		}
	}
	return out
}
