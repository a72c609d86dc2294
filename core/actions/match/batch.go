package match

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// Sources answer for what events do not carry. Each field may be nil; results
// that depend on a nil source are Unknown.
type Sources struct {
	Persons Persons
	Members Members
	// Operators compiles the operators of plugins.
	Operators match.Registry
	// Plugins returns the answers of plugins for one batch of events.
	Plugins func() Plugins
	// OverBudget is called for a definition that was not decided for an event,
	// because that takes more work than one event may cause.
	OverBudget func(projectID, definitionID int64)
}

// reportOverBudget calls OverBudget if it is set.
func (s *Sources) reportOverBudget(projectID int64, definitions []int64) {
	for _, id := range definitions {
		if s.OverBudget != nil {
			s.OverBudget(projectID, id)
		}
	}
}

// NewRound returns the environment for matching one batch, and the plugins of
// it, which may be nil.
func (s *Sources) NewRound(now time.Time) (*match.Env, Plugins) {
	env := &match.Env{Now: now, Budget: new(match.Budget)}
	if s.Plugins == nil {
		return env, nil
	}
	plugins := s.Plugins()
	env.External = plugins
	return env, plugins
}

// EventMatch is an event and a definition that it fits.
type EventMatch struct {
	Event        *sdk.Event
	DefinitionID int64
}

// MatchEvents returns every pair of an event of batch and a definition of x
// that certainly fits. It sends one request per plugin for all events. It
// fails if a person, group or cohort cannot be read.
func (x *Index) MatchEvents(ctx context.Context, projectID int64, batch []*sdk.Event, sources *Sources) ([]EventMatch, error) {
	facts := NewFacts(ctx, projectID, sources.Persons, sources.Members)
	var seen EventView
	seen.SetLookup(facts)
	env, plugins := sources.NewRound(time.Now())
	matches, over := x.matchAll(batch, &seen, env)
	if plugins != nil && plugins.Ask(ctx) {
		matches, over = x.matchAll(batch, &seen, env)
	}
	sources.reportOverBudget(projectID, over)
	if err := facts.Err(); err != nil {
		return nil, fmt.Errorf("match events with actions: %w", err)
	}
	return matches, nil
}

// matchAll also returns the definitions that were over budget for an event.
func (x *Index) matchAll(batch []*sdk.Event, seen *EventView, env *match.Env) (matches []EventMatch, over []int64) {
	for _, ev := range batch {
		if !x.Has(ev.Name) {
			continue
		}
		seen.Reset(ev)
		x.MatchEach(seen, env, func(id int64, r match.Result) {
			switch {
			case r == match.True:
				matches = append(matches, EventMatch{ev, id})
			case env.Budget.Refusal() != match.NotRefused:
				over = append(over, id)
			}
		})
	}
	return matches, over
}

// FirstMatch returns the first of events that certainly fits, or nil.
func (m *Matcher) FirstMatch(ctx context.Context, projectID int64, events []sdk.Event, sources *Sources) *sdk.Event {
	var seen EventView
	seen.SetLookup(NewFacts(ctx, projectID, sources.Persons, sources.Members))
	env, plugins := sources.NewRound(time.Now())
	meter := NewMeter(env)
	for again := true; again; again = plugins != nil && plugins.Ask(ctx) {
		for i := range events {
			seen.Reset(&events[i])
			meter.Begin()
			if m.Match(&seen, env) == match.True {
				return &events[i]
			}
		}
	}
	return nil
}
