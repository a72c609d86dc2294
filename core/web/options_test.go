package web_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// TestOptionsOfManagementPaths checks that OPTIONS with a key names the methods,
// and that it needs a key.
func TestOptionsOfManagementPaths(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(r *web.Router) {
		r.Manage("GET", "/api/things/:id/", "flag:read", func(c *web.Call) error { return web.Done(c.Ctx) })
		r.Manage("PATCH", "/api/things/:id/", "flag:write", func(c *web.Call) error { return web.Done(c.Ctx) })
	}))
	got := call(t, "OPTIONS", base+"/api/things/1/", "", bearer)
	if got.status != 200 || !strings.Contains(got.body, `"name":"Things Instance"`) || got.header.Get("Allow") != "GET, HEAD, PATCH, OPTIONS" {
		t.Errorf("OPTIONS = %d %s, Allow %q", got.status, got.body, got.header.Get("Allow"))
	}
	if got := call(t, "OPTIONS", base+"/api/things/1/", ""); got.status != 401 {
		t.Errorf("OPTIONS without a key = %d, want 401", got.status)
	}
}
