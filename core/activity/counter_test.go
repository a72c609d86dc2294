package activity_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/web"
)

// A flood of one activity makes a bounded number of entries that have all counts. It hides no
// other activity and, as long as it concerns no organization, no entry of an organization.
func TestCountedThingsAreFewEntries(t *testing.T) {
	t.Parallel()
	l := activity.NewLog(dbtest.SQLite(t))
	c := activity.NewCounter(l, zap.NewNop())
	for n := range 200 {
		c.AddKey(web.FailedKey{Client: fmt.Sprint("203.0.113.", n), Code: "invalid_api_key", UserAgent: "curl"})
	}
	for n := range 200 { // of the server
		c.Add(activity.Counted{Activity: activity.ResetRequested, Scope: activity.User, Client: fmt.Sprint("203.0.113.", n)}, "curl")
	}
	reset := activity.Counted{Activity: activity.ResetRequested, Scope: activity.User, ItemID: "7", Name: "ada@example.com", OrganizationID: "o", Client: "203.0.113.9"}
	for range 5 {
		c.Add(reset, "curl")
	}
	c.Flush(context.Background())
	c.Flush(context.Background())
	failed, sum, unknown := 0, 0, 0
	entries, _, err := l.Find(t.Context(), activity.Query{OrganizationID: "o", Server: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		n, _ := e.Detail.Trigger.Payload["count"].(float64)
		if e.Activity == activity.SignInFailed {
			failed, sum = failed+1, sum+int(n)
			continue
		}
		if e.OrganizationID == "" {
			unknown++
			continue
		}
		if e.Activity != activity.ResetRequested || n != 5 || e.ItemID != "7" || e.Detail.Name != "ada@example.com" || e.OrganizationID != "o" || e.Client != "203.0.113.9" || e.UserAgent != "curl" {
			t.Errorf("entry %+v", e)
		}
	}
	if failed != 51 || sum != 200 || unknown != 51 || len(entries) != 103 {
		t.Errorf("%d entries, of them %d of sign-ins with %d in all, %d of unknown addresses", len(entries), failed, sum, unknown)
	}
	all, _, err := l.Find(t.Context(), activity.Query{OrganizationID: "o", Limit: 1000})
	if err != nil || len(all) != 1 {
		t.Errorf("admins of the organization see %d entries, %v; want 1", len(all), err)
	}
}
