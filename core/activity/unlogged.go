package activity

import (
	"context"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/web"
)

// requested is the trigger of an entry that has only the request that made the change.
const requested = "request"

// AddUnlogged adds the entry of a management request that has made none: its method and
// path say what was done. So no successful write is missing in the log, also of a route
// that does not know the log. The entry commits after the change. It is no change for
// clients that follow changes: the request may have changed nothing.
func (a *Audit) AddUnlogged(ctx context.Context, u web.Unlogged) error {
	e := unloggedEntry(u)
	if e == nil || a.db.ReadOnly {
		return nil
	}
	return db.Away(a.db.Tx(ctx, func(ctx context.Context) error { return a.log.write(ctx, *e) }))
}

// unloggedEntry returns the entry of a request, nil for one that changes nothing. It has no name of
// the item; the request is the trigger.
func unloggedEntry(u web.Unlogged) *Entry {
	route := u.Method + " " + u.Pattern
	w, ok := writes[route]
	switch {
	case !ok:
		w = write{other, Updated}
	case w == reading:
		return nil
	}
	e := (&Event{Scope: w.scope, ItemID: u.ItemID, Activity: w.activity, ProjectID: u.ProjectID}).entry(u.Principal)
	if e.ItemID == "" {
		e.ItemID = map[Scope]string{Project: ItemID(u.ProjectID), Organization: e.OrganizationID, User: ItemID(e.UserID)}[w.scope]
	}
	e.Detail.Trigger = &Trigger{JobType: requested, JobID: route, Payload: map[string]any{}}
	return &e
}
