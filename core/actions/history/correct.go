package history

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
)

// Actions reads what a history depends on. core/actions implements it.
type Actions interface {
	Definitions
	// Location returns the time zone of a project.
	Location(ctx context.Context, projectID int64) *time.Location
}

// CorrectWith sets the actions that Erased reads. It must be called before Start.
func (h *Service) CorrectWith(a Actions) { h.actions = a }

// Erased corrects the counts of a project for erased events, and the sets of
// persons for a deleted or merged person, in the transaction of ctx. No other event is read:
// the erased ones are matched, and subtracted from the quarters that hold them.
//
// The counts of a definition that reads persons, groups, cohorts, plugins or dates
// cannot be corrected, because the facts of then are gone. They stay at the old
// number of erasures, and the next request counts that action again.
func (h *Service) Erased(ctx context.Context, e *events.Erased) error {
	if len(e.Events) > 0 {
		if err := h.correctCounts(ctx, e); err != nil {
			return fmt.Errorf("correct the history of actions: %w", err)
		}
	}
	h.store.db.AfterCommit(ctx, func() { h.finder.cache.correct(e) })
	return nil
}

func (h *Service) correctCounts(ctx context.Context, e *events.Erased) error {
	if h.actions == nil {
		return nil
	}
	rows, err := h.store.lockProject(ctx, e.ProjectID, e.Before.Erased)
	if err != nil || len(rows) == 0 {
		return err
	}
	loc := h.actions.Location(ctx, e.ProjectID)
	for i := range rows {
		p, err := h.correctable(ctx, &rows[i], loc)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		fitting, ok := matchErased(p, e)
		if !ok {
			continue
		}
		if err := h.store.subtract(ctx, &rows[i], fitting, e.After.Erased); err != nil {
			return err
		}
	}
	return nil
}

// correctable returns the plan of stored counts if events alone decide it, else
// nil.
func (h *Service) correctable(ctx context.Context, row *countRow, loc *time.Location) (*plan, error) {
	d, err := h.actions.Definition(ctx, row.ProjectID, row.ActionID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := newPlan(d.Steps, loc, h.reader.sources.Operators)
	if err != nil {
		return nil, err
	}
	if p.fingerprint != row.Fingerprint || p.timeDependent || row.Undecided > 0 {
		return nil, nil // counted again by the next request
	}
	return p, nil
}

// matchErased returns the erased events that fit; false if one cannot be decided.
func matchErased(p *plan, e *events.Erased) (fitting []*events.HistoryEvent, ok bool) {
	var view actionmatch.EventView
	env := match.Env{Now: time.Now()}
	for i := range e.Events {
		view.Reset(&e.Events[i].Event)
		switch p.matcher.Match(&view, &env) {
		case match.True:
			fitting = append(fitting, &e.Events[i])
		case match.Unknown:
			return nil, false
		case match.False:
		}
	}
	return fitting, true
}
