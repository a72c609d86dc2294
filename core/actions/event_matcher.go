package actions

import (
	"cmp"
	"context"
	"slices"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// EventMatcher matches events with the stored actions of their project: for
// notifications those that post, for traces all. It is safe for concurrent use.
type EventMatcher struct {
	memory   *Snapshots
	store    *Store
	events   Events
	projects Projects
	sources  actionmatch.Sources
}

// NewEventMatcher returns an EventMatcher over the actions in memory.
func NewEventMatcher(memory *Snapshots, store *Store, e Events, p Projects, sources actionmatch.Sources) *EventMatcher {
	return &EventMatcher{memory: memory, store: store, events: e, projects: p, sources: sources}
}

// MatchEvent returns the actions that ev fits, as they are defined now, by id.
func (m *EventMatcher) MatchEvent(ctx context.Context, ev *sdk.Event) ([]*Action, error) {
	project := m.memory.ForProject(ev.ProjectID)
	var out []*Action
	err := m.match(ctx, ev.ProjectID, project, project.All, []*sdk.Event{ev}, func(_ *sdk.Event, a *Action) { out = append(out, a) })
	slices.SortFunc(out, func(a, b *Action) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// HasPosting reports whether the project has an action that posts.
func (m *EventMatcher) HasPosting(projectID int64) bool {
	return m.memory.ForProject(projectID).Posting.Len() > 0
}

// MatchPosting calls fn for each event of batch and each action of the project
// that posts and that the event fits. The actions are shared: fn must not change
// them.
func (m *EventMatcher) MatchPosting(ctx context.Context, projectID int64, batch []*sdk.Event, fn func(*sdk.Event, *Action)) error {
	project := m.memory.ForProject(projectID)
	return m.match(ctx, projectID, project, project.Posting, batch, fn)
}

func (m *EventMatcher) match(ctx context.Context, projectID int64, project *ProjectActions, index *actionmatch.Index,
	batch []*sdk.Event, fn func(*sdk.Event, *Action)) error {
	matches, err := index.MatchEvents(ctx, projectID, batch, &m.sources)
	for _, one := range matches {
		if a := project.ByID[one.DefinitionID]; a != nil {
			fn(one.Event, a)
		}
	}
	return err
}

// Action returns an action of the project, also a deleted one, or NotFound.
func (m *EventMatcher) Action(ctx context.Context, projectID, id int64) (*Action, error) {
	a, err := m.store.Get(ctx, projectID, id)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// sampleEvents is how many of the newest events LatestMatch reads.
const sampleEvents = 200

// LatestMatch returns the newest event that fits the action, or nil if none of
// the newest events does.
func (m *EventMatcher) LatestMatch(ctx context.Context, projectID, id int64) (*sdk.Event, error) {
	a, err := m.store.Get(ctx, projectID, id)
	if err != nil {
		return nil, err
	}
	matcher, err := actionmatch.Compile(a.Steps, actionmatch.CompileOptions{
		Location: location(ctx, m.projects, projectID), Operators: m.sources.Operators, Lenient: true,
	})
	if err != nil || matcher.NeverMatches() {
		return nil, err
	}
	var filter events.Filter
	if len(a.Steps) == 1 {
		filter.Event = a.Steps[0].Event
	}
	newest, _, err := m.events.List(ctx, projectID, filter, sampleEvents)
	if err != nil {
		return nil, err
	}
	return matcher.FirstMatch(ctx, projectID, newest, &m.sources), nil
}
