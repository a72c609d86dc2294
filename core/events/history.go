package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Ask says which events of a project's history are meant: those that fit any
// of the clauses, in a time and in a range of rows. No clause means no event.
type Ask struct {
	ProjectID int64
	// From and To bound the timestamp: not before From, before To. A zero time
	// is no bound.
	From, To time.Time
	// After and Through bound the row: later than After, not later than
	// Through. 0 is no bound.
	After, Through int64
	Any            []Clause
	// Open turns the question round: only events of which the columns cannot
	// tell whether they fit, because their address is too long for its column.
	Open bool
	// People says that Scan is to find the person of each event.
	People bool
}

// Clause is one way for an event to fit.
type Clause struct {
	Event    string // the name, exactly, unless
	AnyEvent bool   // every name will do
	// URL is compared with $current_url: the text itself with URLIs, or, with
	// URLContains, LIKE %URL% of SQL with case, where % is any run of
	// characters, _ any one, and a backslash makes the next one plain.
	URL    string
	URLWay URLWay
}

// URLWay is how an address is compared.
type URLWay uint8

// The ways to compare an address.
const (
	URLAny URLWay = iota // every event will do, also those without an address
	URLIs
	URLContains
)

// Standing is how far a history has come. What was counted of a project up to
// Row is still right, but for newer rows, while Erased is the same; who its
// people are, while People is.
type Standing struct {
	Row    int64
	Erased int64
	People int64
}

// Standing returns how far the history of a project has come.
func (s *Service) Standing(ctx context.Context, projectID int64) (Standing, error) {
	ctx, cancel := s.asking(ctx)
	defer cancel()
	st, err := s.standing(ctx, projectID)
	if err != nil {
		return Standing{}, fmt.Errorf("find how far the history has come: %w", err)
	}
	return st, nil
}

// Tally is a number of events for each part of a time.
type Tally struct {
	// Row is the last row that was looked at.
	Row int64
	// Events are the numbers by the number of the interval since 1970.
	Events map[int64]int64
	// Open is how many events the columns cannot decide; see Ask.Open.
	Open int64
}

// Tally counts the events that fit, for each interval of the given width that
// has any. It answers from an index alone when the clauses name events.
func (s *Service) Tally(ctx context.Context, a *Ask, width time.Duration) (Tally, error) {
	t, err := s.tally(ctx, a, width)
	if err != nil {
		return Tally{}, fmt.Errorf("count the history: %w", err)
	}
	return t, nil
}

// Actors returns the persons, as they are now, of the events that fit,
// ascending, and whether there are events that the columns cannot decide.
// Distinct ids without a person are left out.
func (s *Service) Actors(ctx context.Context, a *Ask) (ids []int64, open bool, err error) {
	ids, open, err = s.actors(ctx, a)
	if err != nil {
		return nil, false, fmt.Errorf("find the people of the history: %w", err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), open, nil
}

// Past is an event of the history.
type Past struct {
	Row   int64
	Event sdk.Event
	// Person and PersonProperties are the person it belongs to now, whose uuid
	// is the event's PersonID; 0, nil and "" for none, or when nobody asked.
	Person           int64
	PersonProperties []byte
}

// Scan hands every event that fits to fn, in no order that could be relied on,
// until fn fails. What fn gets is good until it returns.
func (s *Service) Scan(ctx context.Context, a *Ask, fn func(*Past) error) error {
	if err := s.scan(ctx, a, fn); err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	return nil
}

// PeopleMoved tells that events of a project belong to other people than
// before. It is a hook of merges, inside their transaction.
func (s *Service) PeopleMoved(ctx context.Context, projectID int64) error {
	if err := s.changed(ctx, projectID, 0, 1); err != nil {
		return fmt.Errorf("note that people changed: %w", err)
	}
	return nil
}
