package web_test

import (
	"errors"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"go.uber.org/zap"
)

func registerCORSRoutes(g *web.Router) {
	g.Public("POST", "/capture/", web.Done)
	g.Public("POST", "/broken", func(*fiber.Ctx) error { return errors.New("broken") })
	g.Manage("GET", "/api/x", "", managed("x"))
}

func TestPublicPathsAnswerEveryOrigin(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(registerCORSRoutes))
	for name, tc := range map[string]struct {
		method, path string
		status       int
	}{
		"a success":           {"POST", "/capture/", 200},
		"a failure":           {"POST", "/broken", 500},
		"no such path":        {"POST", "/nowhere", 404},
		"no path of the API":  {"GET", "/api/nowhere/", 404},
		"no such method":      {"PUT", "/capture/", 405},
		"a preflight":         {"OPTIONS", "/capture/", 200},
		"without the slash":   {"OPTIONS", "/capture", 200},
		"of a path that errs": {"OPTIONS", "/broken/", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tc.method, base+tc.path, "", "Origin: https://shop.example:8443")
			if got.status != tc.status {
				t.Fatalf("status %d, want %d", got.status, tc.status)
			}
			for header, want := range map[string]string{
				"Access-Control-Allow-Origin":      "https://shop.example:8443",
				"Access-Control-Allow-Credentials": "true",
				"Access-Control-Allow-Methods":     "GET, POST, OPTIONS",
				"Vary":                             "Origin",
			} {
				if got.header.Get(header) != want {
					t.Errorf("%s = %q, want %q", header, got.header.Get(header), want)
				}
			}
			if got := call(t, tc.method, base+tc.path, ""); got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Vary") != "Origin" {
				t.Errorf("without an Origin: %v", got.header)
			}
		})
	}
}

func TestPreflightsOfPublicPaths(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(registerCORSRoutes))
	got := call(t, "OPTIONS", base+"/capture/", "", "Origin: https://a.example",
		"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type,x-posthog-token")
	if got.status != 200 || got.body != `{"status":1}` {
		t.Errorf("OPTIONS = %d %s", got.status, got.body)
	}
	if h := got.header.Get("Access-Control-Allow-Headers"); h != "content-type,x-posthog-token" {
		t.Errorf("Access-Control-Allow-Headers = %q", h)
	}
	if h := got.header.Get("Access-Control-Max-Age"); h != "86400" {
		t.Errorf("Access-Control-Max-Age = %q", h)
	}
	got = call(t, "OPTIONS", base+"/capture/", "", "Origin: https://a.example")
	if h := got.header.Get("Access-Control-Allow-Headers"); h != "X-Requested-With,Content-Type" {
		t.Errorf("nothing asked for: Access-Control-Allow-Headers = %q", h)
	}
}

func TestManagementPathsAnswerOnlyTheOriginsOfTheConfig(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(registerCORSRoutes))
	if got := call(t, "GET", base+"/api/x", "", bearer, "Origin: https://a.example"); got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("by default: %d %v", got.status, got.header)
	}
	if got := call(t, "OPTIONS", base+"/api/x", "", "Origin: https://a.example"); got.status != 401 {
		t.Errorf("preflight by default = %d, want 401", got.status)
	}
	cfg := webtest.Config()
	cfg.ManageOrigins = []string{"https://app.example"}
	base = "http://" + webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(registerCORSRoutes)).Address()
	got := call(t, "OPTIONS", base+"/api/x", "", "Origin: https://app.example")
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example" || got.header.Get("Access-Control-Allow-Headers") != "Authorization,Content-Type" {
		t.Errorf("preflight of a listed origin = %d %v", got.status, got.header)
	}
	got = call(t, "GET", base+"/api/x", "", bearer, "Origin: https://evil.example")
	if got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Vary") != "Origin" {
		t.Errorf("an origin that is not listed: %v", got.header)
	}
}
