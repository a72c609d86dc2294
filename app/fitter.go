package app

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// fitter finds the actions that events fit, with what is known of people and of
// what plugins say.
type fitter struct {
	people  actionmatch.People
	members actionmatch.Members
	ask     func() actionmatch.Plugins
}

func newFitter(p actionmatch.People, m actionmatch.Members, ask func() actionmatch.Plugins) *fitter {
	return &fitter{p, m, ask}
}

// fit is an event and an action that it fits.
type fit struct {
	event  *sdk.Event
	action *actions.Action
}

// fitting calls fn for each action of index that each of the events fits.
// Plugins are asked once about all events.
func (f *fitter) fitting(ctx context.Context, projectID int64, project *actions.Project, index *actionmatch.Index,
	batch []*sdk.Event, fn func(*sdk.Event, *actions.Action)) error {
	facts := actionmatch.NewFacts(ctx, projectID, f.people, f.members)
	var seen actionmatch.Seen
	seen.Ask(facts)
	plugins := f.ask()
	env := &match.Env{Now: time.Now(), External: plugins}
	fits := pass(project, index, batch, &seen, env)
	if plugins.Ask(ctx) {
		fits = pass(project, index, batch, &seen, env)
	}
	for _, one := range fits {
		fn(one.event, one.action)
	}
	if err := facts.Err(); err != nil {
		return fmt.Errorf("match events with actions: %w", err)
	}
	return nil
}

func pass(project *actions.Project, index *actionmatch.Index, batch []*sdk.Event, seen *actionmatch.Seen, env *match.Env) []fit {
	var fits []fit
	for _, ev := range batch {
		if !index.Has(ev.Name) {
			continue
		}
		seen.Reset(ev)
		index.Matching(seen, env, func(id int64, r match.Result) {
			if a := project.ByID[id]; r == match.True && a != nil {
				fits = append(fits, fit{ev, a})
			}
		})
	}
	return fits
}

// first returns the first of the events that fits, or nil.
func (f *fitter) first(ctx context.Context, projectID int64, m *actionmatch.Matcher, events []sdk.Event) *sdk.Event {
	var seen actionmatch.Seen
	seen.Ask(actionmatch.NewFacts(ctx, projectID, f.people, f.members))
	plugins := f.ask()
	env := &match.Env{Now: time.Now(), External: plugins}
	for again := true; again; again = plugins.Ask(ctx) {
		for i := range events {
			seen.Reset(&events[i])
			if m.Match(&seen, env) == match.True {
				return &events[i]
			}
		}
	}
	return nil
}
