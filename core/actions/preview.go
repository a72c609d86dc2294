package actions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// Limits of a preview. For a definition with many conditions it reads fewer
// events, so that it explains at most previewFields fields.
const (
	previewDefault = 50
	previewMax     = 500
	previewFields  = 20_000
	previewURL     = 500 // bytes of a URL
)

// Events reads stored events.
type Events interface {
	// List returns at most limit events of a project that pass the filter, newest
	// first, and the cursor of the next page.
	List(ctx context.Context, projectID int64, f events.Filter, limit int) ([]sdk.Event, events.Cursor, error)
}

// PreviewDependencies are what Previews read. Log may be nil.
type PreviewDependencies struct {
	Events  Events
	Sources actionmatch.Sources
	Log     *zap.Logger
}

// Previews matches unsaved definitions with the newest events. It is safe for
// concurrent use.
type Previews struct {
	deps PreviewDependencies
	now  func() time.Time
}

// NewPreviews returns Previews.
func NewPreviews(deps PreviewDependencies) *Previews {
	if deps.Log == nil {
		deps.Log = zap.NewNop()
	}
	deps.Log = deps.Log.Named("actions")
	return &Previews{deps: deps, now: time.Now}
}

// PreviewQuery selects the newest events of a preview.
type PreviewQuery struct {
	Event      string // "" is any
	DistinctID string // "" is any
	Limit      int
	Location   *time.Location // of the project
}

// Preview is the result of a definition for the newest events.
type Preview struct {
	Checked int              `json:"checked"` // number of events
	Matched int              `json:"matched"`
	Unknown int              `json:"unknown"` // number of undecided events
	Results []PreviewedEvent `json:"results"` // newest first
}

// PreviewedEvent is the result for one event.
type PreviewedEvent struct {
	Event PreviewedName `json:"event"`
	actionmatch.Explanation
}

// PreviewedName identifies an event.
type PreviewedName struct {
	UUID       string    `json:"uuid"`
	Name       string    `json:"event"`
	DistinctID string    `json:"distinct_id"`
	Timestamp  time.Time `json:"timestamp"`
	URL        string    `json:"url,omitempty"`
}

// Preview compiles steps and explains their results for the newest events. It
// fails like Compile. Persons, groups and cohorts have their current state;
// results that depend on unreadable ones are Unknown.
func (p *Previews) Preview(ctx context.Context, projectID int64, steps []actionmatch.Step, q PreviewQuery) (Preview, error) {
	m, err := actionmatch.Compile(steps, actionmatch.CompileOptions{Location: q.Location, Operators: p.deps.Sources.Operators})
	if err != nil {
		return Preview{}, err
	}
	limit := min(q.Limit, previewMax, max(1, previewFields/max(1, m.MaxFields())))
	newest, _, err := p.deps.Events.List(ctx, projectID, events.Filter{Event: q.Event, DistinctID: q.DistinctID}, limit)
	if err != nil {
		return Preview{}, fmt.Errorf("preview an action: %w", err)
	}
	facts := actionmatch.NewFacts(ctx, projectID, p.deps.Sources.Persons, p.deps.Sources.Members)
	env, plugins := p.deps.Sources.NewRound(p.now())
	out := p.explain(m, newest, facts, env)
	if plugins != nil && plugins.Ask(ctx) {
		out = p.explain(m, newest, facts, env)
	}
	if facts.Err() != nil {
		p.deps.Log.Warn("preview incomplete: loading properties or cohorts failed", zap.Int64("project_id", projectID), zap.Error(facts.Err()))
	}
	return out, nil
}

func (p *Previews) explain(m *actionmatch.Matcher, events []sdk.Event, facts actionmatch.Lookup, env *match.Env) Preview {
	out := Preview{Checked: len(events), Results: make([]PreviewedEvent, len(events))}
	s := new(actionmatch.EventView)
	s.SetLookup(facts)
	meter := actionmatch.NewMeter(env)
	for i := range events {
		ev := &events[i]
		s.Reset(ev)
		meter.Begin()
		e := m.Explain(s, env)
		switch {
		case e.Matches == nil:
			out.Unknown++
		case *e.Matches:
			out.Matched++
		}
		out.Results[i] = PreviewedEvent{
			Event: PreviewedName{
				UUID: ev.UUID, Name: ev.Name, DistinctID: ev.DistinctID, Timestamp: ev.Timestamp, URL: strings.Clone(text.Ellipsis(s.URL(), previewURL)),
			},
			Explanation: e,
		}
	}
	return out
}
