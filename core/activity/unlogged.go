package activity

import (
	"context"
	"net/http"
	"strings"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/web"
)

// The scopes of items that have no handler of their own for the log.
var resources = map[string]Scope{
	"dead_letters": "DeadLetter", "event_definitions": "EventDefinition", "property_definitions": "PropertyDefinition", "groups_types": "GroupType",
	"scheduled_changes": "ScheduledChange", "role_access": "FeatureFlagRoleAccess", "deliveries": "NotificationDelivery", "persons": Person,
	"feature_flags": Flag, "dashboards": Dashboard, "cohorts": Cohort, "actions": Action, "plugins": Plugin, "projects": Project, "organizations": Organization,
}

// readingPosts are the last segments of POST requests that change nothing.
var readingPosts = map[string]bool{
	"explain": true, "preview": true, "preview_message": true, "bulk_keys": true, "user_blast_radius": true, "query": true,
}

// verbs are the names of what a method does to an item.
var verbs = map[string]string{http.MethodPost: Created, http.MethodPut: Updated, http.MethodPatch: Updated, http.MethodDelete: Deleted}

// AddUnlogged adds the entry of a management request that has made none: its method and
// path say what was done. So no successful write is missing in the log, also of a route
// that does not know the log. The entry commits after the change. It is no change for
// clients that follow changes: the request may have changed nothing.
func (a *Audit) AddUnlogged(ctx context.Context, u web.Unlogged) error {
	e := eventOf(u)
	if e == nil || a.db.ReadOnly {
		return nil
	}
	return db.Away(a.db.Tx(ctx, func(ctx context.Context) error { return a.log.write(ctx, e.entry(u.Principal)) }))
}

// eventOf returns the event of a request, nil for one that changes nothing. The last
// segment that names a resource is the scope; a fixed segment after it is the verb.
func eventOf(u web.Unlogged) *Event {
	segments := strings.Split(strings.Trim(u.Pattern, "/"), "/")
	last := segments[len(segments)-1]
	if u.Method == http.MethodPost && readingPosts[last] {
		return nil
	}
	e := &Event{Scope: "Other", ItemID: u.ItemID, Activity: verbs[u.Method], Name: u.Method + " " + u.Pattern, ProjectID: u.ProjectID}
	for i := len(segments) - 1; i >= 0; i-- {
		if scope, ok := resources[segments[i]]; ok {
			e.Scope = scope
			if rest := segments[i+1:]; len(rest) > 0 && !strings.HasPrefix(last, ":") {
				e.Activity = last
			}
			break
		}
	}
	return e
}
