package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// HistoryQuery selects events of a project's history: those that fit any of the
// clauses, in a range of time and of rows. Without a clause it selects nothing.
type HistoryQuery struct {
	ProjectID int64
	// From and To bound the timestamp to [From, To). A zero time does not bound.
	From, To time.Time
	// After and Through bound the row to (After, Through]. 0 does not bound.
	After, Through int64
	Any            []HistoryClause
	// Ambiguous selects only events whose columns cannot decide whether they fit,
	// because their URL is longer than its column.
	Ambiguous bool
	// WithPersons makes ScanHistory read the person of each event.
	WithPersons bool
}

// HistoryClause is one way for an event to fit.
type HistoryClause struct {
	Event    string // the exact name
	AnyEvent bool   // every name fits; Event is ignored
	// URL is compared with $current_url: with URLEquals the whole text, with
	// URLContains as LIKE %URL% of SQL, case-sensitive: % is any run of
	// characters, _ any single one, and a backslash escapes the next character.
	URL         string
	URLMatching URLMatching
}

// URLMatching is how a URL is compared.
type URLMatching uint8

// The ways to compare a URL.
const (
	URLAny URLMatching = iota // every event fits, also without a URL
	URLEquals
	URLContains
)

// Checkpoint is how far a history has come. Counts of a project up to Row stay
// valid while Erased is unchanged; the persons of its events while Persons is.
type Checkpoint struct {
	Row     int64
	Erased  int64
	Persons int64
}

// Checkpoint returns how far the history of a project has come.
func (s *Service) Checkpoint(ctx context.Context, projectID int64) (Checkpoint, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	cp, err := s.store.readCheckpoint(ctx, projectID)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the checkpoint of the history: %w", err)
	}
	return cp, nil
}

// FirstEvent returns the smallest timestamp of the events of a project, zero
// without events.
func (s *Service) FirstEvent(ctx context.Context, projectID int64) (time.Time, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	micros, ok, err := s.history.first(ctx, projectID)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return time.UnixMicro(micros).UTC(), nil
}

// HistoryCounts are numbers of events by interval.
type HistoryCounts struct {
	// Row is the last row that was counted.
	Row int64
	// Events are the counts by the number of the interval since 1970.
	Events map[int64]int64
	// Ambiguous is the number of events that the columns cannot decide; see
	// HistoryQuery.Ambiguous.
	Ambiguous int64
}

// CountHistory counts the events that fit, for each interval of the given width
// that has any. It reads only an index if the clauses name events.
func (s *Service) CountHistory(ctx context.Context, q *HistoryQuery, width time.Duration) (HistoryCounts, error) {
	counts, err := s.history.count(ctx, q, width)
	if err != nil {
		return HistoryCounts{}, fmt.Errorf("count the history: %w", err)
	}
	return counts, nil
}

// PersonIDs returns the current persons of the events that fit, ascending, and
// whether q has ambiguous events besides. Distinct ids without a person are left
// out.
func (s *Service) PersonIDs(ctx context.Context, q *HistoryQuery) (ids []int64, ambiguous bool, err error) {
	ids, ambiguous, err = s.history.personIDs(ctx, q)
	if err != nil {
		return nil, false, fmt.Errorf("find the persons of the history: %w", err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), ambiguous, nil
}

// HistoryEvent is an event of the history.
type HistoryEvent struct {
	Row   int64
	Event sdk.Event
	// PersonRow and PersonProperties are those of the current person, whose uuid
	// is Event.PersonID; 0, nil and "" without one or without WithPersons.
	PersonRow        int64
	PersonProperties []byte
}

// ScanHistory calls fn for every event that fits, in no particular order, until
// fn fails. The event is valid until fn returns.
func (s *Service) ScanHistory(ctx context.Context, q *HistoryQuery, fn func(*HistoryEvent) error) error {
	if err := s.history.scan(ctx, q, fn); err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	return nil
}

// PersonsChanged records that events of a project belong to other persons than
// before. It is a hook of merges and joins their transaction.
func (s *Service) PersonsChanged(ctx context.Context, projectID int64) error {
	if err := s.store.recordChange(ctx, projectID, 0, 1); err != nil {
		return fmt.Errorf("record a change of persons: %w", err)
	}
	return nil
}
