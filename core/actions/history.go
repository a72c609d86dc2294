package actions

import (
	"context"
	"errors"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// HistoryConfig is what an operator can say about counting the history.
type HistoryConfig struct {
	// Patience is how long an answer waits for a count that is being made;
	// then it says what is known so far.
	Patience time.Duration `koanf:"patience"`
	// Refresh is how long a count is believed that depends on more than events:
	// on what people, groups and cohorts are now, on plugins, on the date.
	Refresh time.Duration `koanf:"refresh"`
	// Days is how far back series may go, and how many days are kept.
	Days int `koanf:"days"`
	// Runs is how many actions are counted at once by reading events. Besides
	// there is one that an index answers.
	Runs int `koanf:"runs"`
	// PeopleBytes is about how much memory keeps who did an action.
	PeopleBytes int `koanf:"people_bytes"`
}

// DefaultHistoryConfig waits two seconds, reads events for one action at a
// time, and keeps a little more than a year.
func DefaultHistoryConfig() HistoryConfig {
	return HistoryConfig{Patience: 2 * time.Second, Refresh: 10 * time.Minute, Days: 400, Runs: 1, PeopleBytes: 32 << 20}
}

// Validate reports the first option that makes no sense.
func (c HistoryConfig) Validate() error {
	switch {
	case c.Patience < 0:
		return errors.New("actions.history.patience must not be negative (0 never waits)")
	case c.Refresh < time.Second:
		return errors.New("actions.history.refresh must be a second or more")
	case c.Days < countedDays+1 || c.Days > 4000:
		return errors.New("actions.history.days must be between 94 and 4000")
	case c.Runs < 1:
		return errors.New("actions.history.runs must be at least 1")
	case c.PeopleBytes < 0:
		return errors.New("actions.history.people_bytes must not be negative (0 keeps none)")
	}
	return nil
}

// countedDays is more than three months have.
const countedDays = 93

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
	// CountHistory counts the events of q for each interval of the given width.
	CountHistory(ctx context.Context, q *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error)
	// PersonIDs returns the persons of the events of q, ascending, and whether
	// q has ambiguous events besides.
	PersonIDs(ctx context.Context, q *events.HistoryQuery) (ids []int64, ambiguous bool, err error)
	// ScanHistory calls fn for every event of q until fn fails. The event is
	// valid until fn returns.
	ScanHistory(ctx context.Context, q *events.HistoryQuery, fn func(*events.HistoryEvent) error) error
}

// Persons reads persons. core/persons implements it.
type Persons interface {
	// ByIDs returns the persons with these ids that exist, in any order.
	ByIDs(ctx context.Context, projectID int64, ids []int64) ([]persons.Person, error)
}

// HistoryFacts is who tells what events do not carry; each may be nil.
type HistoryFacts struct {
	People    actionmatch.People
	Members   actionmatch.Members
	Operators match.Registry // compiles the operators of plugins
	// Plugins returns who answers for those, for some events; without it
	// events that hang on them are undecided.
	Plugins func() actionmatch.Plugins
}

// Finding is what is known about the history of an action.
type Finding struct {
	Count int64
	// Undecided is how many events of all that were looked at could not be
	// told to fit or not: a plugin or a cohort had no answer.
	Undecided int64
	// Calculating says that the count is not what it will be in a moment.
	Calculating bool
	// CalculatedAt is when the history was last counted to its end; zero when
	// it never was.
	CalculatedAt time.Time
	// Problem is what is wrong with the definition, or "".
	Problem string
}

// Bucket is one interval of a series.
type Bucket struct {
	Start time.Time
	Count int64
}

// errCalculating is the answer when nothing can be said yet.
func errCalculating() error {
	return fault.New(fault.Unavailable, "calculating", "This is still being worked out. Ask again in a moment.").After(2 * time.Second)
}
