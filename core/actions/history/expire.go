package history

import (
	"context"
	"fmt"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
)

// Expired drops the counted days of a project whose events retention has deleted, in
// the transaction of ctx: the next request counts the remaining events of these days. Other days,
// and the sets of persons that begin later, stay valid.
func (h *Service) Expired(ctx context.Context, e *events.Expired) error {
	if err := h.store.cutDays(ctx, e); err != nil {
		return fmt.Errorf("correct the history of actions: %w", err)
	}
	h.store.db.AfterCommit(ctx, func() { h.finder.cache.expire(e) })
	return nil
}

// Retention tells since when a project keeps events.
type Retention interface {
	// KeptSince returns the time since which all events with these names are kept, of
	// any name for nil; zero if they are kept for ever.
	KeptSince(projectID int64, names []string) time.Time
}

// ShowRetention sets the retention that answers mention. It must be called before Start.
func (h *Service) ShowRetention(r Retention) { h.retention = r }

// retainedFrom returns the time since which the events of steps are kept, if that is
// after from; else nil.
func (h *Service) retainedFrom(projectID int64, steps []actionmatch.Step, from time.Time) *string {
	if h.retention == nil {
		return nil
	}
	var names []string
	for _, s := range steps {
		if s.Event == "" {
			names = nil
			break
		}
		names = append(names, s.Event)
	}
	kept := h.retention.KeptSince(projectID, names)
	if kept.IsZero() || !from.Before(kept) {
		return nil
	}
	text := stampMicros(kept)
	return &text
}
