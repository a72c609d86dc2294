package actions

import (
	"context"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
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

// Past is the event store as the history of actions asks it.
type Past interface {
	// Standing returns how far the history of a project has come.
	Standing(ctx context.Context, projectID int64) (Standing, error)
	// Tally counts the events that fit for each interval of the given width.
	Tally(ctx context.Context, a *PastAsk, width time.Duration) (PastTally, error)
	// Actors returns the persons of the events that fit, ascending, and
	// whether there are open events besides.
	Actors(ctx context.Context, a *PastAsk) (ids []int64, open bool, err error)
	// Scan hands every event that fits to fn until fn fails. What fn gets is
	// good until it returns.
	Scan(ctx context.Context, a *PastAsk, fn func(*PastEvent) error) error
}

// Standing is how far a history has come: what was counted up to Row stays
// right while Erased is the same, whose events those are while People is.
type Standing struct{ Row, Erased, People int64 }

// PastAsk says which events: those that fit a clause, with a timestamp from
// From up to, but not at, To, and a row later than After and not later than
// Through. Zero bounds do not bound. Open asks for the events about which the
// store cannot tell by itself whether they fit; no other answer holds those.
type PastAsk struct {
	ProjectID      int64
	From, To       time.Time
	After, Through int64
	Any            []PastClause
	Open           bool
	People         bool // the person of each event is wanted
}

// PastClause is one way for an event to fit. An empty URL takes every address,
// none as well; Contains tells LIKE %URL% from equality.
type PastClause struct {
	Event    string
	AnyEvent bool
	URL      string
	Contains bool
}

// PastTally is the events of each interval by its number since 1970, the last
// row that was looked at, and how many events are open besides.
type PastTally struct {
	Row    int64
	Events map[int64]int64
	Open   int64
}

// PastEvent is an event of the history. Person and PersonProperties are those
// of the person it belongs to now; 0 and nil for none, or when nobody asked.
type PastEvent struct {
	Row              int64
	Event            sdk.Event
	Person           int64
	PersonProperties []byte
}

// Person is a person as answers show it.
type Person struct {
	ID          int64
	UUID        string
	Name        string
	DistinctIDs []string
	Properties  []byte // a JSON object
	CreatedAt   time.Time
}

// Gallery shows persons.
type Gallery interface {
	// Persons returns the persons with these ids that there are, in any order.
	Persons(ctx context.Context, projectID int64, ids []int64) ([]Person, error)
}

// HistoryFacts is who tells what events do not carry; each may be nil.
type HistoryFacts struct {
	People    People
	Members   Members
	Operators match.Registry // compiles the operators of plugins
	// Plugins returns who answers for those, for some events; without it
	// events that hang on them are undecided.
	Plugins func() Plugins
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
