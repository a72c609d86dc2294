package web_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestEnvironmentsAreAnAliasOfProjects(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/projects", "", managed("list"))
		g.Manage("GET", "/api/projects/:project_id", "", managed("project"))
		g.Manage("GET", "/api/projects/:project_id/flags/activity/", "", managed("activity"))
		g.Manage("GET", "/api/projects/:project_id/flags/:id/", "", managed("flag"))
		g.Manage("PATCH", "/api/projects/:project_id/flags/:id/", "flag:write", managed("changed"))
	}))
	for _, c := range []struct{ method, path string }{
		{"GET", "/1/"}, {"GET", "/@current/"}, {"GET", "/1/flags/activity"}, {"GET", "/1/flags/7/"}, {"HEAD", "/1/flags/7/"}, {"PATCH", "/@current/flags/7/"},
		{"GET", "/99/flags/7/"}, {"PUT", "/1/flags/7/"}, {"GET", "/1/nothing/"},
	} {
		want := call(t, c.method, base+"/api/projects"+c.path, "", bearer)
		got := call(t, c.method, base+"/api/environments"+c.path, "", bearer)
		if got.status != want.status || got.body != want.body || got.header.Get("Allow") != want.header.Get("Allow") {
			t.Errorf("%s %s: %d %s, as a project %d %s", c.method, c.path, got.status, got.body, want.status, want.body)
		}
		if got := call(t, c.method, base+"/api/environments"+c.path, ""); got.status == 200 {
			t.Errorf("%s %s without a key = %d", c.method, c.path, got.status)
		}
	}
}
