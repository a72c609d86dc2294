package activity_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/web"
)

// A request without an entry has one with the kind and the id of its item.
func TestUnloggedRequests(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	who := &auth.Principal{User: auth.User{ID: 7, Email: "ada@example.com"}, OrganizationID: "o"}
	for _, c := range []struct{ method, pattern, id, want string }{
		{"PATCH", "/api/projects/:project_id", "", "Project updated 3"},
		{"PATCH", "/api/organizations/:organization_id", "", "Organization updated o"},
		{"DELETE", "/api/organizations/:organization_id/members/:user_id", "9", "OrganizationMembership deleted 9"},
		{"DELETE", "/api/projects/:project_id/keys/:id", "4", "ProjectAPIKey deleted 4"},
		{"PATCH", "/api/users/@me", "", "User updated 7"},
		{"POST", "/api/projects/:project_id/dead_letters/replay", "", "DeadLetter replay "},
		{"POST", "/api/projects/:project_id/feature_flags/explain", "", ""},
		{"POST", "/api/projects/:project_id/new_things", "", "Other updated "},
	} {
		err := activity.NewAudit(d).AddUnlogged(t.Context(), web.Unlogged{Method: c.method, Pattern: c.pattern, ItemID: c.id, ProjectID: 3, Principal: who})
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := activity.NewLog(d).Find(t.Context(), activity.Query{OrganizationID: "o", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(all) > 0 && all[0].Detail.Trigger.JobID == c.method+" "+c.pattern {
			got = string(all[0].Scope) + " " + all[0].Activity + " " + all[0].ItemID
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.pattern, got, c.want)
		}
	}
}
