// Package history counts the stored events that fit an action and finds the
// persons who did it.
//
// Actions are retroactive: nothing is written beside an event. A count reads the
// event store once and keeps what it found, a number for each quarter of an
// hour, in the database; a later count reads only newer rows. Late events fall
// into the quarter they belong to. Erased events and a changed definition start the
// count again. So does a request for a definition that reads persons, groups,
// cohorts, plugins or dates, unless counting takes too long for that, which the
// refresh interval bounds; a changed cohort always does.
//
// Where an index of the event store answers the whole definition (event names,
// URLs) no event is read; otherwise the matcher of core/actions/match decides
// event by event, as it does for live events. A history is read in parts (days,
// ranges of rows), several at a time, and only the columns that the definition
// reads. Persons are read for many events at once; a run keeps the properties of
// them that the definition reads.
//
// Requests for the same action share one run. An answer waits a configured time
// and then returns what is known so far with Calculating set; the run goes on.
// Several nodes may count the same action: the stored row has a serial number,
// and a run that loses the race starts from what the other one stored.
//
// The persons of an action are kept in memory. Merged, deleted and erased persons
// are corrected there, also in searches that are running.
package history

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/actions/history/background"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"
)

// Definition is the part of an action that its history depends on.
type Definition struct {
	ID        int64 // of the action
	ProjectID int64
	Version   int64 // grows with every change of the action
	Steps     []actionmatch.Step
}

// EventHistory reads the stored events of a project. core/events implements it.
type EventHistory interface {
	// Checkpoint returns how far the history of a project has come.
	Checkpoint(ctx context.Context, projectID int64) (events.Checkpoint, error)
	// FirstEvent returns the smallest timestamp of a project, zero without events.
	FirstEvent(ctx context.Context, projectID int64) (time.Time, error)
	// CountHistory counts the events of q for each interval of the given width.
	CountHistory(ctx context.Context, q *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error)
	// DistinctIDs returns the distinct ids of the events of q, and whether q has
	// ambiguous events besides.
	DistinctIDs(ctx context.Context, q *events.HistoryQuery) (ids map[string]struct{}, ambiguous bool, err error)
	// Persons calls fn for the current person of each distinct id that has one.
	// The value is valid until fn returns.
	Persons(ctx context.Context, projectID int64, distinctIDs []string, properties bool, fn func(*events.HistoryPerson) error) error
	// ScanHistory calls fn for every event of q until fn fails. The event is
	// valid until fn returns; its fields may be kept, except its properties.
	ScanHistory(ctx context.Context, q *events.HistoryQuery, fn func(*events.HistoryEvent) error) error
}

// Persons reads persons. core/persons implements it.
type Persons interface {
	// ByIDs returns the persons with these ids that exist, in any order.
	ByIDs(ctx context.Context, projectID int64, ids []int64) ([]persons.Person, error)
}

// CountStatus is the count of an action, and how complete it is.
type CountStatus struct {
	Count int64
	// Undecided is the number of events that could be neither matched nor
	// rejected, because a plugin or a cohort had no answer.
	Undecided int64
	// Calculating reports that a run is still counting; Progress is how far.
	Calculating bool
	Progress    background.Progress
	// CalculatedAt is the time of the last complete count, zero without one.
	CalculatedAt time.Time
	// Ages reports that the count depends on more than events, so that it may
	// differ from a count now; see CalculatedAt.
	Ages bool
	// Problem is why the definition is invalid, or "".
	Problem string
}

// Bucket is one interval of a series.
type Bucket struct {
	Start time.Time
	Count int64
}
