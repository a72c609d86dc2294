package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/browser"
)

// access is a line of testdata/routes_access.txt: who may call a route.
type access struct {
	address, method, path string
	needs                 []string
}

func (a access) name() string { return a.address + " " + a.method + " " + a.path }

func (a access) need(word string) bool { return slices.Contains(a.needs, word) }

func (a access) in(segment string) bool { return strings.Contains(a.path, segment) }

// scopes returns the scopes that the route needs.
func (a access) scopes() []string {
	return slices.DeleteFunc(slices.Clone(a.needs), func(n string) bool { return !strings.Contains(n, ":") })
}

// readAccess reads the table, by name.
func readAccess(t *testing.T) map[string]access {
	t.Helper()
	text, err := os.ReadFile("testdata/routes_access.txt")
	check(t, err)
	table := map[string]access{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) < 4 {
			t.Fatalf("%q has no rule", line)
		}
		a := access{f[0], f[1], f[2], f[3:]}
		if _, twice := table[a.name()]; twice {
			t.Errorf("%s has two lines", a.name())
		}
		table[a.name()] = a
	}
	return table
}

// Verdicts on a request. A request that passes may still fail for its body or for
// an object that does not exist.
const (
	passes       = "passes"
	unauthorized = "401"
	forbidden    = "403"
	hidden       = "404, as if the project or organization did not exist"
	noProject    = "400 invalid_project"
)

// exceptions are verdicts that do not follow from the table, with the reason.
var exceptions = map[string]struct{ verdict, reason string }{
	"public POST /i/v1/analytics/events, none":                                     {"400 missing_headers", "the protocol reports a missing Authorization header with the other headers"},
	"public POST /i/v1/analytics/events, owner of another organization":            {passes, "the request names no project: the events go to the project that the user works in"},
	"public POST /i/v1/analytics/events, operator of another organization":         {passes, "as above"},
	"public POST /i/v1/analytics/events, key for another organization of the user": {passes, "as above"},
	"public POST /i/v1/analytics/events, key for another project":                  {passes, "as above, of the projects of the key"},
	"public POST /i/v1/ai/events, none":                                            {"400 missing_headers", "as /i/v1/analytics/events"},
	"public POST /i/v1/ai/events, owner of another organization":                   {passes, "as /i/v1/analytics/events"},
	"public POST /i/v1/ai/events, operator of another organization":                {passes, "as above"},
	"public POST /i/v1/ai/events, key for another organization of the user":        {passes, "as above"},
	"public POST /i/v1/ai/events, key for another project":                         {passes, "as above, of the projects of the key"},
	"public DELETE /api/projects/:project_id, key for the project":                 {forbidden, "the project that the test closes is a new one, which is not among those of the key"},
}

// verdict returns what the table says about a request with the credential.
func (a access) verdict(c *credential) string {
	switch {
	case a.need("open"):
		return passes
	case c.session != 0 && a.in("/i/v1/") && strings.HasSuffix(a.path, "/events"): // the protocol reports a missing key with the other headers
		return "400 missing_headers"
	case c.session != 0 && a.in("/personal_api_keys/@current"): // a session has no key
		return "404 of an object that exists"
	case a.need("project-key"):
		return a.publicVerdict(c)
	case c.kind != personal && c.kind != secret, c.session != 0 && a.address == "admin":
		return unauthorized
	case c.kind == secret && !a.need("secret-key"):
		return forbidden
	case a.in("/:project_id") && c.foreign:
		return hidden
	case a.in("/:project_id") && c.project == restrictedElsewhere:
		return forbidden
	case !c.holds(a):
		return forbidden
	case a.in("/:organization_id") && c.foreign:
		return hidden
	case a.in("/:organization_id") && a.method != "GET" && c.project != unrestricted,
		a.need("unrestricted") && c.project != unrestricted,
		a.need("operator") && !c.operator,
		a.need("admin") && c.level < auth.LevelAdmin,
		a.need("editor") && !c.editor:
		return forbidden
	}
	return passes
}

// publicVerdict is for paths that take a project key, or a personal key with the
// number of the project.
func (a access) publicVerdict(c *credential) string {
	switch {
	case c.kind == invalid || c.kind == secret || c.session != 0:
		return unauthorized
	case a.in("/ofrep/"): // names no project: a personal key stands for the project that its user works in
		return passes
	case c.kind == personal && (c.foreign || c.project == restrictedElsewhere):
		return noProject
	}
	return passes
}

// TestEveryRouteWithEveryCredential calls every registered route with every kind
// of credential, and compares the verdict with the table. A route without a line
// and a line without a route are failures.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends thousands of requests one after the other")
	}
	t.Parallel()
	w := newAccessWorld(t)
	table := readAccess(t)
	used := map[string]bool{}
	requests := 0
	for _, r := range w.Routes {
		a, ok := table[routeName(r)]
		if !ok {
			t.Errorf("%s has no line in testdata/routes_access.txt: write down who may call it", routeName(r))
			continue
		}
		delete(table, routeName(r))
		if first := append(a.scopes(), "")[0]; first != r.Scope || r.Public != a.need("project-key") && !a.need("open") || r.SecretKeys != a.need("secret-key") {
			t.Errorf("%s: the table has scope %q, the route %q", a.name(), first, r.Scope)
		}
		for _, c := range w.credentialsFor(t, a) {
			want := a.verdict(c)
			got, answer := w.ask(t, a, c, want == passes)
			if e, ok := exceptions[a.name()+", "+c.name]; ok {
				want = e.verdict
				used[a.name()+", "+c.name] = true
			}
			requests++
			if got != want {
				t.Errorf("%s, %s: %s, want %s\n\t%.300s", a.name(), c.name, got, want, answer)
			}
		}
	}
	for name := range table {
		t.Errorf("%s is in the table and not registered", name)
	}
	for name := range exceptions {
		if !used[name] {
			t.Errorf("the exception %q is not used", name)
		}
	}
	t.Logf("%d requests to %d routes", requests, len(w.Routes))
}

func routeName(r web.Route) string {
	address := "public"
	if r.Admin {
		address = "admin"
	}
	return address + " " + r.Method + " " + r.Path
}

// ask sends the request of a line and returns the verdict of the server with the
// answer. Requests that pass get objects that they may delete.
func (w *accessWorld) ask(t *testing.T, a access, c *credential, disposable bool) (verdict, answer string) {
	t.Helper()
	path := w.path(t, a, c, disposable)
	base, body := w.URL, w.body(a)
	if a.address == "admin" {
		base = w.AdminURL
	}
	event := fmt.Sprintf(`{"api_key":%q,"project_id":%d,"event":"e","distinct_id":"u"}`, c.key, w.First.Project.ID)
	switch {
	case !a.need("project-key"):
	case a.in("/logs"), a.in("/traces"), a.in("/metrics"), strings.HasPrefix(a.path, "/i/v0/ai") && !a.in("/batch"):
		path += fmt.Sprintf("?project_id=%d&token=%s", w.First.Project.ID, c.key)
		body = "{}"
	case a.in("/changes"), a.in("/early_access_features"):
		path += fmt.Sprintf("?token=%s&project_id=%d", url.QueryEscape(c.key), w.First.Project.ID)
	case a.in("/:token"):
		path += fmt.Sprintf("?project_id=%d", w.First.Project.ID)
	case a.method == "GET":
		path += "?data=" + url.QueryEscape(event)
	case a.in("/i/v1/"):
		body = `{"created_at":"2024-05-01T10:00:00Z","batch":[{"event":"e","uuid":"0190e7a8-0000-7000-8000-000000000001","distinct_id":"u","timestamp":"2024-05-01T10:00:00Z"}]}`
	case a.in("/ofrep/"):
		body = `{"context":{"targetingKey":"u"}}`
	default:
		body = event
	}
	req, err := http.NewRequestWithContext(t.Context(), a.method, base+path, strings.NewReader(body))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"PostHog-Sdk-Info", "PostHog-Request-Id"} {
		req.Header.Set(name, "0190e7a8-0000-7000-8000-000000000002")
	}
	req.Header.Set("PostHog-Attempt", "1")
	req.Header.Set("PostHog-Request-Timestamp", "2024-05-01T10:00:00Z")
	if c.session != 0 { // a new one: the request may end it
		_, token := w.newSession(t, c.session)
		req.Header.Set("Cookie", "guidon_session="+token)
		req.Header.Set(browser.HeaderCSRF, browser.CSRFToken(token))
	}
	if c.key != "" && (!a.need("project-key") || a.in("/v1/")) {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := w.client.Do(req)
	check(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check(t, err)
	answer = fmt.Sprintf("%s %s = %d %s", a.method, path, res.StatusCode, text)
	return classify(a, path, res.StatusCode, string(text)), answer
}

// consolePages are the routes of pages of the console.
var consolePages = []string{"/console", "/console/*", "/sign-in", "/reset-password", "/invitation"}

// classify reads the verdict from an answer.
func classify(a access, path string, status int, answer string) string {
	switch {
	case status == 401:
		return unauthorized
	case status == 403:
		return forbidden
	case status == 404 && (strings.Contains(answer, "Project not found.") || a.in("/:organization_id")):
		return hidden
	case status == 404 && slices.Contains(consolePages, a.path): // of a server that was built without its console
		return passes
	case status == 404 && !strings.Contains(path, absent):
		return "404 of an object that exists"
	case status == 400 && strings.Contains(answer, "invalid_project"):
		return noProject
	case status == 400 && strings.Contains(answer, "missing_headers"):
		return "400 missing_headers"
	case status >= 500 && !strings.Contains(path, "/debug/"), status == 429:
		return fmt.Sprint(status)
	}
	return passes
}

// Programs that name environments where they mean projects reach every route.
func TestEveryProjectRouteHasItsAlias(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	found := 0
	for _, r := range w.Routes {
		rest, ok := strings.CutPrefix(r.Path, "/api/projects/:project_id")
		if !ok || r.Admin || r.Public {
			continue
		}
		found++
		req, err := http.NewRequestWithContext(t.Context(), r.Method, w.URL+"/api/environments/1"+rest, nil)
		check(t, err)
		res, err := http.DefaultClient.Do(req)
		check(t, err)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s /api/environments/1%s without a key = %d, want 401", r.Method, rest, res.StatusCode)
		}
	}
	if found < 50 {
		t.Errorf("only %d routes of projects", found)
	}
}
