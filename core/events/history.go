package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// HistoryQuery says which events of a project's history are meant: those that fit any
// of the clauses, in a time and in a range of rows. No clause means no event.
type HistoryQuery struct {
	ProjectID int64
	// From and To bound the timestamp: not before From, before To. A zero time
	// is no bound.
	From, To time.Time
	// After and Through bound the row: later than After, not later than
	// Through. 0 is no bound.
	After, Through int64
	Any            []HistoryClause
	// Ambiguous turns the question round: only events of which the columns cannot
	// tell whether they fit, because their address is too long for its column.
	Ambiguous bool
	// WithPersons says that Scan is to find the person of each event.
	WithPersons bool
}

// HistoryClause is one way for an event to fit.
type HistoryClause struct {
	Event    string // the name, exactly, unless
	AnyEvent bool   // every name will do
	// URL is compared with $current_url: the text itself with URLIs, or, with
	// URLContains, LIKE %URL% of SQL with case, where % is any run of
	// characters, _ any one, and a backslash makes the next one plain.
	URL         string
	URLMatching URLMatching
}

// URLMatching is how an address is compared.
type URLMatching uint8

// The ways to compare an address.
const (
	URLAny URLMatching = iota // every event will do, also those without an address
	URLEquals
	URLContains
)

// Checkpoint is how far a history has come. What was counted of a project up to
// Row is still right, but for newer rows, while Erased is the same; who its
// people are, while People is.
type Checkpoint struct {
	Row     int64
	Erased  int64
	Persons int64
}

// Checkpoint returns how far the history of a project has come.
func (s *Service) Checkpoint(ctx context.Context, projectID int64) (Checkpoint, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	st, err := s.readCheckpoint(ctx, projectID)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("find how far the history has come: %w", err)
	}
	return st, nil
}

// HistoryCounts is a number of events for each part of a time.
type HistoryCounts struct {
	// Row is the last row that was looked at.
	Row int64
	// Events are the numbers by the number of the interval since 1970.
	Events map[int64]int64
	// Ambiguous is how many events the columns cannot decide; see Ask.Open.
	Ambiguous int64
}

// CountHistory counts the events that fit, for each interval of the given width that
// has any. It answers from an index alone when the clauses name events.
func (s *Service) CountHistory(ctx context.Context, a *HistoryQuery, width time.Duration) (HistoryCounts, error) {
	t, err := s.countHistory(ctx, a, width)
	if err != nil {
		return HistoryCounts{}, fmt.Errorf("count the history: %w", err)
	}
	return t, nil
}

// PersonIDs returns the persons, as they are now, of the events that fit,
// ascending, and whether there are events that the columns cannot decide.
// Distinct ids without a person are left out.
func (s *Service) PersonIDs(ctx context.Context, a *HistoryQuery) (ids []int64, open bool, err error) {
	ids, open, err = s.findPersonIDs(ctx, a)
	if err != nil {
		return nil, false, fmt.Errorf("find the people of the history: %w", err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), open, nil
}

// HistoryEvent is an event of the history.
type HistoryEvent struct {
	Row   int64
	Event sdk.Event
	// PersonRow and PersonProperties are the person it belongs to now, whose uuid
	// is the event's PersonID; 0, nil and "" for none, or when nobody asked.
	PersonRow        int64
	PersonProperties []byte
}

// ScanHistory hands every event that fits to fn, in no order that could be relied on,
// until fn fails. What fn gets is good until it returns.
func (s *Service) ScanHistory(ctx context.Context, a *HistoryQuery, fn func(*HistoryEvent) error) error {
	if err := s.scanHistory(ctx, a, fn); err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	return nil
}

// PersonsChanged tells that events of a project belong to other people than
// before. It is a hook of merges, inside their transaction.
func (s *Service) PersonsChanged(ctx context.Context, projectID int64) error {
	if err := s.recordChange(ctx, projectID, 0, 1); err != nil {
		return fmt.Errorf("note that people changed: %w", err)
	}
	return nil
}
