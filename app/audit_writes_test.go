package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/activity"
)

// The activity log has words for each management route that may change something, and for no
// other one.
func TestEveryWriteHasWordsInTheLog(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, a := range readAccess(t) {
		if a.method != "GET" && a.method != "HEAD" && a.in("/api/") && !a.need("open") && !slices.Contains(routes, a.method+" "+a.path) {
			routes = append(routes, a.method+" "+a.path)
		}
	}
	known := activity.Writes()
	for _, r := range routes {
		if !slices.Contains(known, r) {
			t.Errorf("%s has no line in core/activity/writes.go: write down what it does to what", r)
		}
	}
	for _, r := range known {
		if !slices.Contains(routes, r) {
			t.Errorf("%s is in core/activity/writes.go and is no route", r)
		}
	}
	if len(routes) < 60 {
		t.Errorf("only %d routes", len(routes))
	}
}

// A write that makes no entry of its own has one with the kind of its item, what was done to
// it, and the request.
func TestUnloggedWritesAreInTheLog(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.write(t, "PATCH", s.URL+"/api/users/@me/", "{}") // changes nothing
	s.write(t, "POST", s.URL+"/api/projects/1/groups_types/", `{"group_type":"company"}`)
	all, raw := s.audit(t, "/api/organizations/@current/activity_log/?limit=100")
	want := []string{
		"User updated PATCH /api/users/@me", "GroupType created POST /api/projects/:project_id/groups_types",
	}
	var got []string
	for _, e := range all.Results {
		line := e.Scope + " " + e.Activity
		if e.Detail.Trigger != nil {
			line += " " + e.Detail.Trigger.JobID
		}
		if e.Detail.Name != "" || e.ItemID == "" && e.Scope != "GroupType" || e.UserID == nil {
			t.Errorf("entry %+v", e)
		}
		got = append(got, line)
	}
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if !json.Valid([]byte(raw)) || strings.Contains(raw, `"payload":null`) {
		t.Errorf("the answer %s", raw)
	}
}

// The access of a role to a flag is in the log with the key of the flag and the name of the
// role, when it is given and when it is removed.
func TestRoleAccessIsInTheLog(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var role struct{ ID string }
	var access struct{ ID int }
	s.write(t, "POST", s.URL+"/api/projects/1/feature_flags/", `{"key":"new-nav"}`)
	for _, made := range []struct {
		out        any
		path, body string
	}{
		{&role, "/api/organizations/@current/roles/", `{"name":"Growth"}`},
		{&access, "/api/projects/1/feature_flags/1/role_access/", `{"role_id":"%s"}`},
	} {
		raw := s.write(t, "POST", s.URL+made.path, strings.ReplaceAll(made.body, "%s", role.ID))
		if err := json.Unmarshal([]byte(raw), made.out); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "DELETE", fmt.Sprint(s.URL, "/api/projects/1/feature_flags/1/role_access/", access.ID, "/"), "")
	all, _ := s.audit(t, "/api/organizations/@current/activity_log/?scope=FeatureFlagRoleAccess&limit=100")
	var got []string
	for _, e := range all.Results {
		line := fmt.Sprint(e.Activity, " ", e.ItemID == fmt.Sprint(access.ID), " ", e.Detail.Name)
		for _, c := range e.Detail.Changes {
			line += fmt.Sprint(" ", c.Field, " ", c.Before, " ", c.After)
		}
		got = append(got, line)
	}
	if want := []string{"deleted true new-nav role Growth <nil>", "created true new-nav role <nil> Growth"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}
