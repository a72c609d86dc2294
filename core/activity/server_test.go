package activity_test

import (
	"context"
	"testing"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// Entries of plugins belong to the server: an admin of the organization of the operator does
// not read them, also those of earlier versions, which have the organization.
func TestPluginEntriesAreForOperators(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		audit := activity.NewAudit(d)
		who := &auth.Principal{User: auth.User{ID: 7, Email: "op@example.com"}, OrganizationID: "o"}
		for _, scope := range []activity.Scope{activity.Plugin, activity.Role} {
			err := audit.Change(t.Context(), who, func(context.Context) (*activity.Event, error) {
				return &activity.Event{Scope: scope, ItemID: "a", Activity: activity.Updated, Name: "a"}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		old := activity.NewEntry(who, 0, activity.Plugin, 1, "configured", at)
		if old.OrganizationID != "o" {
			t.Fatal("the entry has no organization")
		}
		add(t, audit.Log(), old)
		for server, want := range map[bool]int{false: 1, true: 3} {
			entries, total, err := audit.Log().Find(t.Context(), activity.Query{OrganizationID: "o", Server: server, Limit: 9})
			if err != nil || total != want {
				t.Errorf("operator %t: %d entries, want %d, %v", server, total, want, err)
			}
			for _, e := range entries {
				if !server && e.Scope == activity.Plugin {
					t.Errorf("an admin reads %+v", e)
				}
			}
		}
		_, total, err := audit.Log().Find(t.Context(), activity.Query{OrganizationID: "o", Scope: activity.Plugin, Limit: 9})
		if err != nil || total != 0 {
			t.Errorf("asked for plugins, an admin gets %d, %v", total, err)
		}
	})
}
