package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"go.uber.org/zap"
)

// routesFunc registers the routes of a test.
type routesFunc func(g *web.Router)

func (r routesFunc) Routes(g *web.Router) { r(g) }

// reply is an answer that has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}}

// call sends a request. Each of headers is "Name: value".
func call(tb testing.TB, method, url, body string, headers ...string) reply {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatalf("%s %s: read the answer: %v", method, url, err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

const bearer = "Authorization: Bearer phx_test"

func text(s string) func(c *fiber.Ctx) error {
	return func(c *fiber.Ctx) error { return c.SendString(s) }
}

func managed(s string) func(c *web.Call) error {
	return func(c *web.Call) error { return c.SendString(s) }
}

func TestRouting(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Public("POST", "/capture/", text("captured"))
		g.Public("GET", "/capture/", text("captured by query"))
		g.Manage("GET", "/api/projects/:project_id/flags/:id/", "", func(c *web.Call) error { return c.SendString("flag " + c.Params("id")) })
		g.Manage("PATCH", "/api/projects/:project_id/flags/:id", "", managed("patched"))
		g.Manage("GET", "/api/projects/:project_id/flags/mine", "", managed("mine"))
		g.Manage("GET", "/flags/definitions", "", managed("definitions"))
		g.Public("GET", "/array/:token/config.js", func(c *fiber.Ctx) error { return c.SendString(web.Param(c, "token")) })
		g.Manage("GET", "/api/projects/:project_id/flags/:key/remote_config/", "", func(c *web.Call) error { return c.SendString("config of " + c.Params("key")) })
	}))
	for name, tc := range map[string]struct {
		method, path string
		status       int
		body         string
	}{
		"with a slash at the end":                  {"POST", "/capture/", 200, "captured"},
		"without a slash at the end":               {"POST", "/capture", 200, "captured"},
		"another method of the path":               {"GET", "/capture/?data=x", 200, "captured by query"},
		"a fixed segment wins over a parameter":    {"GET", "/api/projects/1/flags/mine/", 200, "mine"},
		"a parameter":                              {"GET", "/api/projects/1/flags/7", 200, "flag 7"},
		"a parameter is unescaped":                 {"GET", "/api/projects/%40current/flags/a%20b%2Bc+d", 200, "flag a b+c+d"},
		"a key with dots and dashes":               {"GET", "/api/projects/@current/flags/rec-on.v2/remote_config", 200, "config of rec-on.v2"},
		"a parameter before a fixed end":           {"GET", "/array/phc_a-b.c/config.js", 200, "phc_a-b.c"},
		"HEAD stands in for a management GET":      {"HEAD", "/api/projects/1/flags/7", 200, ""},
		"HEAD does not capture":                    {"HEAD", "/capture", 405, ""},
		"an unknown path has the public face":      {"GET", "/nowhere", 404, `{"type":"invalid_request","code":"not_found","detail":"Not found."}`},
		"an unknown path below api, the other":     {"GET", "/api/nowhere", 404, `{"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
		"another method has the face of the path":  {"PUT", "/api/projects/1/flags/7", 405, `{"type":"invalid_request","code":"method_not_allowed","detail":"Method \"PUT\" not allowed.","attr":null}`},
		"also where the path is not below api":     {"POST", "/flags/definitions/", 405, `{"type":"invalid_request","code":"method_not_allowed","detail":"Method \"POST\" not allowed.","attr":null}`},
		"also on a public path":                    {"DELETE", "/capture/", 405, `{"type":"invalid_request","code":"method_not_allowed","detail":"Method \"DELETE\" not allowed."}`},
		"an unknown method":                        {"PROPFIND", "/capture/", 405, `{"type":"invalid_request","code":"method_not_allowed","detail":"Method \"PROPFIND\" not allowed."}`},
		"a path in other letters is another path":  {"POST", "/Capture/", 404, `{"type":"invalid_request","code":"not_found","detail":"Not found."}`},
		"the product says who it is":               {"GET", "/", 200, `{"name":"guidon"}`},
		"it says that it is alive":                 {"GET", "/_liveness", 200, "alive"},
		"and ready when there is nothing to check": {"GET", "/_readiness/", 200, `{"status":"ready"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tc.method, base+tc.path, "", bearer)
			if got.status != tc.status || got.body != tc.body {
				t.Errorf("%s %s = %d %s, want %d %s", tc.method, tc.path, got.status, got.body, tc.status, tc.body)
			}
			if got.header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s: no request id", tc.method, tc.path)
			}
			if allow := got.header.Get("Allow"); (allow != "") != (tc.status == 405) {
				t.Errorf("%s %s: Allow is %q", tc.method, tc.path, allow)
			}
		})
	}
}

func TestDuplicatePathIsRejected(t *testing.T) {
	t.Parallel()
	s, err := web.New(webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Mount(routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/things/:id/", "", managed("a"))
		g.Manage("GET", "/api/things/:thing", "", managed("b"))
	}))
	if err := s.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "/api/things/:thing") {
		t.Errorf("Start: %v, want an error that names the path", err)
	}
}

func TestRegisteredListsEveryRoute(t *testing.T) {
	t.Parallel()
	s, err := web.New(webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Mount(routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/things/:id/", "thing:read", managed("a"))
		g.Manage("GET", "/api/things/all", "thing:read", managed("b"))
		g.Public("POST", "/e", text(""))
	}))
	got := s.Router().Registered()
	if len(got) != 3 {
		t.Fatalf("Registered = %v", got)
	}
	seen := map[string]int{}
	for i, r := range got {
		seen[r.Path] = i
	}
	if seen["/api/things/all"] > seen["/api/things/:id"] {
		t.Errorf("a parameter is tried before a fixed segment: %v", got)
	}
}

func TestErrorFormats(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"internal":           errors.New("pq: password of admin is hunter2"),
		"internal-with-code": fault.New(fault.Internal, "disk", "the path is /secret"),
		"invalid":            fault.Field("filters", "not_a_dict", "Expected a dictionary."),
		"invalid-renamed":    fault.Field("non_field_errors", "invalid", "Wrong."),
		"malformed":          fault.New(fault.Malformed, "", "Cut short."),
		"unauthenticated":    fault.New(fault.Unauthenticated, "", ""),
		"forbidden":          fault.New(fault.Forbidden, "", ""),
		"notfound":           fault.New(fault.NotFound, "", ""),
		"notacceptable":      fault.New(fault.NotAcceptable, "", ""),
		"conflict":           fault.New(fault.Conflict, "", ""),
		"conflict-renamed":   fault.New(fault.Conflict, "last_owner", ""),
		"toolarge":           fault.New(fault.TooLarge, "", ""),
		"unsupported":        fault.New(fault.Unsupported, "", ""),
		"throttled":          fault.New(fault.Throttled, "", "").After(1500 * time.Millisecond),
		"unavailable":        fault.New(fault.Unavailable, "fetch_team_fail", "Unable to fetch team from database."),
		"payment":            fault.New(fault.PaymentRequired, "", ""),
		"wrapped":            errors.Join(errors.New("read flag 7"), fault.New(fault.NotFound, "", "")),
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Public("GET", "/public/:what", func(c *fiber.Ctx) error {
			_ = c.SendString("half an answer")
			return failures[c.Params("what")]
		})
		g.Manage("GET", "/api/manage/:what", "", func(c *web.Call) error { return failures[c.Params("what")] })
	}))
	for what, tc := range map[string]struct {
		status               int
		typ, code, detail    string
		attr                 string
		typManage, codManage string // where the management face differs
		retry                string
	}{
		"internal":           {status: 500, typ: "server_error", code: "error", detail: "A server error occurred."},
		"internal-with-code": {status: 500, typ: "server_error", code: "error", detail: "A server error occurred."},
		"invalid":            {status: 400, typ: "validation_error", code: "not_a_dict", detail: "Expected a dictionary.", attr: "filters"},
		"invalid-renamed":    {status: 400, typ: "validation_error", code: "invalid_input", detail: "Wrong."},
		"malformed":          {status: 400, typ: "validation_error", code: "invalid_payload", detail: "Cut short.", typManage: "invalid_request", codManage: "parse_error"},
		"unauthenticated":    {status: 401, typ: "authentication_error", code: "invalid_api_key", codManage: "not_authenticated"},
		"forbidden":          {status: 403, typ: "authentication_error", code: "permission_denied"},
		"notfound":           {status: 404, typ: "invalid_request", code: "not_found", detail: "Not found."},
		"notacceptable":      {status: 406, typ: "invalid_request", code: "not_acceptable"},
		"conflict":           {status: 409, typ: "server_error", code: "conflict"},
		"conflict-renamed":   {status: 409, typ: "invalid_request", code: "last_owner"},
		"toolarge":           {status: 413, typ: "client_error", code: "request_too_large", detail: "Request too large."},
		"unsupported":        {status: 415, typ: "invalid_request", code: "unsupported_media_type"},
		"throttled":          {status: 429, typ: "throttled_error", code: "throttled", detail: "Request was throttled. Expected available in 2 seconds.", retry: "2"},
		"unavailable":        {status: 503, typ: "server_error", code: "fetch_team_fail", detail: "Unable to fetch team from database.", retry: "1"},
		"payment":            {status: 402, typ: "server_error", code: "payment_required"},
		"wrapped":            {status: 404, typ: "invalid_request", code: "not_found", detail: "Not found."},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/public/", "/api/manage/"} {
				want := tc
				if path == "/api/manage/" {
					if tc.typManage != "" {
						want.typ = tc.typManage
					}
					if tc.codManage != "" {
						want.code = tc.codManage
					}
				}
				got := call(t, "GET", base+path+what, "", bearer)
				var face map[string]*string
				if err := json.Unmarshal([]byte(got.body), &face); err != nil {
					t.Fatalf("%s: %v: %s", path, err, got.body)
				}
				if got.status != want.status || *face["type"] != want.typ || *face["code"] != want.code {
					t.Errorf("%s = %d %s", path, got.status, got.body)
				}
				if *face["detail"] == "" || (want.detail != "" && *face["detail"] != want.detail) {
					t.Errorf("%s: detail is %q, want %q", path, *face["detail"], want.detail)
				}
				attr, there := face["attr"]
				switch {
				case want.attr != "" && (attr == nil || *attr != want.attr):
					t.Errorf("%s: attr of %s, want %q", path, got.body, want.attr)
				case want.attr == "" && path == "/public/" && there:
					t.Errorf("%s: %s has an attr", path, got.body)
				case want.attr == "" && path != "/public/" && (!there || attr != nil):
					t.Errorf("%s: attr of %s, want null", path, got.body)
				}
				if got.header.Get("Retry-After") != want.retry {
					t.Errorf("%s: Retry-After is %q, want %q", path, got.header.Get("Retry-After"), want.retry)
				}
				if (got.header.Get("WWW-Authenticate") == "Bearer") != (want.status == 401) {
					t.Errorf("%s: WWW-Authenticate is %q", path, got.header.Get("WWW-Authenticate"))
				}
			}
		})
	}
}

func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/projects/:project_id/flags/activity/", "", managed("activity"))
		g.Manage("GET", "/api/projects/:project_id/flags/:id/", "", managed("flag"))
		g.Manage("PATCH", "/api/projects/:project_id/flags/:id/", "", managed("flag"))
		g.Manage("DELETE", "/api/projects/:project_id/flags/:id/", "flag:write", func(c *web.Call) error { return c.MethodNotAllowed() })
	}))
	got := call(t, "DELETE", base+"/api/projects/1/flags/7/", "", bearer)
	if got.status != 405 || got.body != "" || got.header.Get("Allow") != "GET, HEAD, PATCH" || got.header.Get("Content-Type") != "" {
		t.Errorf("DELETE = %d %q %v", got.status, got.body, got.header)
	}
	if got := call(t, "PUT", base+"/api/projects/1/flags/activity/", "", bearer); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("PUT of a literal sibling = %d, Allow %q", got.status, got.header.Get("Allow"))
	}
	if got := call(t, "PUT", base+"/api/projects/1/flags/7/", "", bearer); got.status != 405 || got.header.Get("Allow") != "GET, HEAD, PATCH, DELETE" {
		t.Errorf("PUT = %d, Allow %q", got.status, got.header.Get("Allow"))
	}
	if got := call(t, "DELETE", base+"/api/projects/1/flags/7/", ""); got.status != 401 {
		t.Errorf("DELETE without a key = %d, want 401", got.status)
	}
}

// TestFixedPathsRejectOtherMethods checks that a method that only a pattern with a
// parameter has is rejected on a fixed path, and that an empty id is not found.
func TestFixedPathsRejectOtherMethods(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/projects/:project_id/flags/", "", managed("all flags"))
		g.Manage("POST", "/api/projects/:project_id/flags/explain/", "", managed("explanation"))
		g.Manage("GET", "/api/projects/:project_id/flags/:id/", "", managed("flag"))
		g.Manage("PATCH", "/api/projects/:project_id/flags/:id/", "", managed("flag"))
		g.Public("GET", "/capture", text("captured"))
	}))
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/api/projects/1/flags/explain/", 405, "POST"},
		{"HEAD", "/api/projects/1/flags/explain", 405, "POST"},
		{"PATCH", "/api/environments/1/flags/explain/", 405, "POST"},
		{"POST", "/api/projects/1/flags/explain/", 200, ""},
		{"GET", "/api/projects/1/flags/explained/", 200, ""},
		{"GET", "/api/projects/1/flags/", 200, ""},
		{"GET", "/api/projects/1/flags//", 404, ""},
		{"PATCH", "/api/projects/1/flags//", 405, "GET, HEAD"},
		{"HEAD", "/capture", 405, "GET"},
	} {
		if got := call(t, c.method, base+c.path, "", bearer); got.status != c.status || got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s = %d, Allow %q, want %d, %q", c.method, c.path, got.status, got.header.Get("Allow"), c.status, c.allow)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Public("GET", "/id", func(c *fiber.Ctx) error { return c.SendString(web.RequestID(c)) })
	}))
	for given, kept := range map[string]bool{"abc-123.x_y:z": true, "": false, "a b": false, strings.Repeat("x", 129): false, "a<b": false} {
		got := call(t, "GET", base+"/id", "", "X-Request-Id: "+given)
		if (got.body == given) != kept || got.header.Get("X-Request-Id") != got.body || got.body == "" {
			t.Errorf("X-Request-Id %q: handler saw %q, client got %q", given, got.body, got.header.Get("X-Request-Id"))
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.RequestTimeout = 20 * time.Millisecond
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(func(g *web.Router) {
		g.Manage("GET", "/api/slow", "", func(c *web.Call) error {
			select {
			case <-c.UserContext().Done():
				return fault.New(fault.Unavailable, "too_slow", "Too slow.").Because(c.UserContext().Err())
			case <-time.After(time.Minute):
				return nil
			}
		})
	}))
	if got := call(t, "GET", "http://"+s.Address()+"/api/slow", "", bearer); got.status != 503 {
		t.Errorf("GET /api/slow = %d %s, want 503", got.status, got.body)
	}
}

func TestPublicRateIsPerProject(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.PublicRate = web.Rate{PerSecond: 0.001, Burst: 2}
	cfg.ManageRate = web.Rate{PerSecond: 0.001, Burst: 1}
	keys := webtest.DefaultKeys()
	keys.Projects["phc_other"] = auth.Project{ID: 2}
	s := webtest.Start(t, cfg, keys, zap.NewNop(), nil, routesFunc(func(g *web.Router) {
		g.Public("POST", "/e", func(c *fiber.Ctx) error {
			if _, err := g.ProjectOf(c, c.Query("token"), ""); err != nil {
				return err
			}
			return web.Done(c)
		})
		g.Manage("GET", "/api/x", "", managed("x"))
	}))
	base := "http://" + s.Address()
	var statuses []int
	for _, key := range []string{"phc_test", "phc_test", "phc_test", "phc_other"} {
		got := call(t, "POST", base+"/e?token="+key, "")
		statuses = append(statuses, got.status)
		if got.status == 429 && got.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	for range 2 {
		statuses = append(statuses, call(t, "GET", base+"/api/x", "", bearer).status)
	}
	if want := []int{200, 200, 429, 200, 200, 429}; !equal(statuses, want) {
		t.Errorf("statuses = %v, want %v", statuses, want)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// The admin address names the failed checks; the public one has only the status.
func TestReadinessNamesFailedChecks(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(func(g *web.Router) {
		g.ReadinessField("ingestion", func() any { return 7 })
		g.Check("database", func(context.Context) error { return errors.New("dial tcp 10.1.2.3: refused") })
		g.Check("journal", func(context.Context) error {
			return fault.New(fault.Unavailable, "full", "The disk is full.")
		})
		g.Check("flags", func(context.Context) error { return nil })
	}))
	for base, want := range map[string]string{
		s.AdminURL(): `{"ingestion":7,"not_ready":{"database":"not available","journal":"The disk is full."},"status":"not ready"}`,
		s.URL():      `{"status":"not ready"}`,
	} {
		got := call(t, "GET", base+"/_readiness", "")
		if got.status != 503 || got.body != want || got.header.Get("Retry-After") != "1" {
			t.Errorf("GET %s/_readiness = %d %s, want 503 %s", base, got.status, got.body, want)
		}
	}
}

func TestServerPages(t *testing.T) {
	t.Parallel()
	s, err := web.New(webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.SetInfo(web.ServerInfo{Version: "1.2.3", OpenAPI: []byte("openapi: 3.1.0\n")})
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	base := "http://" + s.Address()
	if got := call(t, "GET", base+"/", ""); got.body != `{"name":"guidon"}` {
		t.Errorf("GET / = %s", got.body)
	}
	if got := call(t, "GET", s.AdminURL()+"/", ""); got.body != `{"name":"guidon","version":"1.2.3"}` {
		t.Errorf("GET / of the admin address = %s", got.body)
	}
	if got := call(t, "GET", base+"/openapi.yaml", ""); got.body != "openapi: 3.1.0\n" || got.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("GET /openapi.yaml = %s %v", got.body, got.header)
	}
	if got := call(t, "GET", s.AdminURL()+"/metrics", ""); got.status != 404 {
		t.Errorf("GET /metrics without a registry = %d, want 404", got.status)
	}
}

// Scans pause while a request of a client is answered, not for the management API.
func TestRequestsOfClientsAreCounted(t *testing.T) {
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		count := func(c *fiber.Ctx) error { return c.SendString(strconv.FormatInt(pools.InFlight(), 10)) }
		g.Public("POST", "/capture/", count)
		g.Manage("GET", "/api/projects/:project_id/flags", "", func(c *web.Call) error { return count(c.Ctx) })
		g.Public("POST", "/panic/", func(*fiber.Ctx) error { panic("broken") })
	}))
	call(t, "POST", base+"/panic/", "")
	if got := call(t, "POST", base+"/capture/", ""); got.body != "1" {
		t.Errorf("%s requests of clients are in flight during one", got.body)
	}
	if got := call(t, "GET", base+"/api/projects/1/flags", "", bearer); got.body != "0" {
		t.Errorf("%s requests of clients are in flight during one of the management API", got.body)
	}
}
