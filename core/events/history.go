package events

import (
	"context"
	"fmt"
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
	// WithPersons makes ScanHistory read the person of each event. Persons reads
	// those of many events at once and costs less.
	WithPersons bool
	// Without are the columns that ScanHistory does not read.
	Without HistoryColumns
}

// HistoryColumns is a set of columns of events.
type HistoryColumns uint8

// The columns that a scan can leave out: the fields of the event are then zero.
const (
	IdentityColumns  HistoryColumns = 1 << iota // UUID and ReceivedAt
	ElementsColumn                              // ElementsChain
	PropertiesColumn                            // Properties
)

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
	cp, err := s.backend.Checkpoint(ctx, projectID)
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
	at, ok, err := s.backend.Oldest(ctx, projectID, "", time.Time{})
	if err != nil || !ok {
		return time.Time{}, err
	}
	return at, nil
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
	var counts HistoryCounts
	err := s.db.RunBackgroundScan(ctx, q.ProjectID, func(ctx context.Context) (err error) {
		counts, err = s.backend.CountHistory(ctx, q, width)
		return err
	})
	if err != nil {
		return HistoryCounts{}, fmt.Errorf("count the history: %w", err)
	}
	return counts, nil
}

// DistinctIDs returns the distinct ids of the events that fit, and whether q has
// ambiguous events besides. It reads only an index if the clauses name events.
func (s *Service) DistinctIDs(ctx context.Context, q *HistoryQuery) (ids map[string]struct{}, ambiguous bool, err error) {
	err = s.db.RunBackgroundScan(ctx, q.ProjectID, func(ctx context.Context) (err error) {
		ids, ambiguous, err = s.backend.DistinctIDs(ctx, q)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("find the distinct ids of the history: %w", err)
	}
	return ids, ambiguous, nil
}

// HistoryPerson is the current person of a distinct id.
type HistoryPerson struct {
	DistinctID string
	Row        int64
	Properties []byte // nil unless they are requested
}

// Persons calls fn for the current person of each distinct id that has one, in no
// particular order, until fn fails. The value is valid until fn returns.
func (s *Service) Persons(ctx context.Context, projectID int64, distinctIDs []string, properties bool, fn func(*HistoryPerson) error) error {
	if err := s.shared.Persons(ctx, projectID, distinctIDs, properties, fn); err != nil {
		return fmt.Errorf("read the persons of the history: %w", err)
	}
	return nil
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
// fn fails. The event is valid until fn returns; the memory of its properties is
// used again, and its other fields may be kept.
func (s *Service) ScanHistory(ctx context.Context, q *HistoryQuery, fn func(*HistoryEvent) error) error {
	err := s.db.RunBackgroundScan(ctx, q.ProjectID, func(ctx context.Context) error {
		return s.backend.ScanHistory(ctx, q, fn)
	})
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	return nil
}
