package web_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/envelope"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sent
		bearer string
		want   string // empty: 401
	}{
		"api_key of an event":                          {sent{body: []byte(`{"api_key":"phc_a","event":"x"}`)}, "", "phc_a"},
		"token of an event":                            {sent{body: []byte(`{"token":"phc_a"}`)}, "", "phc_a"},
		"$token of an engage":                          {sent{body: []byte(`{"$token":"phc_a"}`)}, "", "phc_a"},
		"the property token":                           {sent{body: []byte(`{"properties":{"token":"phc_a"}}`)}, "", "phc_a"},
		"the top before the property":                  {sent{body: []byte(`{"properties":{"token":"phc_b"},"api_key":"phc_a"}`)}, "", "phc_a"},
		"an envelope":                                  {sent{body: []byte(`{"api_key":"phc_a","batch":[{"event":"x"}]}`)}, "", "phc_a"},
		"an envelope speaks for its batch":             {sent{body: []byte(`{"api_key":"phc_a","batch":[{"properties":{"token":"phc_b"}}]}`)}, "", "phc_a"},
		"a batch that speaks for itself":               {sent{body: []byte(`{"batch":[{"properties":{"token":"phc_a"}},{"token":"phc_a"}]}`)}, "", "phc_a"},
		"a list":                                       {sent{body: []byte(`[{"event":"x"},{"properties":{"token":"phc_a"}}]`)}, "", "phc_a"},
		"a list that disagrees":                        {sent{body: []byte(`[{"token":"phc_a"},{"token":"phc_b"}]`)}, "", ""},
		"a list that disagrees only in space":          {sent{body: []byte(`[{"token":"phc_a"},{"token":"phc_a\n"}]`)}, "", "phc_a"},
		"null and empty are no keys":                   {sent{body: []byte(`{"$token":null,"token":"","api_key":"phc_a"}`)}, "", "phc_a"},
		"of a repeated name the last counts":           {sent{body: []byte(`{"api_key":"phc_b","api_key":"phc_a"}`)}, "", "phc_a"},
		"a name in escapes":                            {sent{body: []byte(`{"\u0061pi_key":"phc_a"}`)}, "", "phc_a"},
		"a number is no key":                           {sent{body: []byte(`{"api_key":7}`)}, "", ""},
		"items that are no objects":                    {sent{body: []byte(`[null,7,"x",[],{"token":"phc_a"}]`)}, "", "phc_a"},
		"the form":                                     {sent{kind: form, body: []byte("data=%7B%7D&api_key=phc_a&token=phc_b")}, "", "phc_a"},
		"the query, whatever the method":               {sent{query: "token=phc_a", body: []byte(`{}`)}, "", "phc_a"},
		"the other name in the query":                  {sent{query: "api_key=phc_a", body: []byte(`{}`)}, "", "phc_a"},
		"the JSON before the query":                    {sent{query: "api_key=phc_b", body: []byte(`{"token":"phc_a"}`)}, "", "phc_a"},
		"the Authorization header comes last":          {sent{body: []byte(`{}`)}, "bearer phc_a", "phc_a"},
		"another scheme is no key":                     {sent{body: []byte(`{}`)}, "Basic phc_a", ""},
		"an empty list":                                {sent{body: []byte(`[]`)}, "", ""},
		"properties that are no object have no token":  {sent{body: []byte(`{"properties":"token"}`)}, "", ""},
		"a key in a place where no client ever put it": {sent{body: []byte(`{"properties":{"api_key":"phc_a"}}`)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := request(tc.sent)
			defer release(c)
			if tc.bearer != "" {
				c.Request().Header.Set("Authorization", tc.bearer)
			}
			p, err := web.Body(c, limits)
			if err != nil {
				t.Fatal(err)
			}
			env, err := envelope.Read(p.JSON)
			got := ""
			if err == nil {
				got, err = web.Token(c, p, &env)
			}
			if tc.want == "" {
				if f := fault.From(err); f == nil || f.Kind != fault.Unauthenticated || f.Code != "invalid_api_key" {
					t.Errorf("Token = %q, %v; want 401 invalid_api_key", got, err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("Token = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// admitted serves /e, which answers the id of the project it is for.
func admitted(g *web.Router) {
	g.Public("POST", "/e", func(c *fiber.Ctx) error {
		p, err := web.Body(c, g.Limits())
		if err != nil {
			return err
		}
		env, err := envelope.Read(p.JSON)
		if err != nil {
			return err
		}
		project, err := g.Authenticate(c, p, &env)
		if errors.Is(err, web.ErrHiddenProject) {
			c.Set("X-Hidden", "yes")
		}
		if err != nil {
			return err
		}
		return web.JSON(c, project.ID)
	})
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	keys := webtest.DefaultKeys()
	keys.Projects["phc_two"] = auth.Project{ID: 2}
	keys.Principals["phx_one"] = &auth.Principal{KeyID: 2, ProjectIDs: []int64{1}}
	keys.Principals["legacy"] = &auth.Principal{KeyID: 3}
	base := webtest.Serve(t, keys, routesFunc(admitted))
	for name, tc := range map[string]struct {
		query, body string
		status      int
		want        string // the project, or the code
	}{
		"a project key":                                {"", `{"api_key":"phc_two"}`, 200, "2"},
		"space around a key is forgiven":               {"", `{"api_key":" phc_two\n"}`, 200, "2"},
		"an unknown key":                               {"", `{"api_key":"phc_none"}`, 401, "invalid_api_key"},
		"no key at all":                                {"", `{"event":"x"}`, 401, "invalid_api_key"},
		"an empty key":                                 {"", `{"api_key":"  "}`, 401, "invalid_api_key"},
		"a key that is too long":                       {"", `{"api_key":"phc_0123456789012345678901234567890123456789012345678901234567890"}`, 401, "invalid_api_key"},
		"a key that is not ASCII":                      {"", `{"api_key":"phc_ä"}`, 401, "invalid_api_key"},
		"a personal key with project_id in the body":   {"", `{"api_key":"phx_test","project_id":2}`, 200, "2"},
		"a personal key with project_id as text":       {"", `{"api_key":"phx_test","project_id":"2"}`, 200, "2"},
		"a personal key with project_id in the query":  {"project_id=2", `{"api_key":"phx_test"}`, 200, "2"},
		"a personal key with project_id in a list":     {"", `[{"api_key":"phx_test","project_id":2}]`, 200, "2"},
		"a personal key without the usual start":       {"", `{"api_key":"legacy","project_id":1}`, 200, "1"},
		"a personal key without project_id":            {"", `{"api_key":"phx_test"}`, 200, "1"},
		"project_id that is no number":                 {"", `{"api_key":"phx_test","project_id":"one"}`, 400, "invalid_project"},
		"project_id that is a fraction":                {"", `{"api_key":"phx_test","project_id":1.5}`, 400, "invalid_project"},
		"project_id that is a word of ours":            {"", `{"api_key":"phx_test","project_id":"@current"}`, 400, "invalid_project"},
		"an unknown personal key":                      {"", `{"api_key":"phx_none","project_id":1}`, 401, "invalid_personal_api_key"},
		"an unknown personal key without project_id":   {"", `{"api_key":"phx_none"}`, 401, "invalid_personal_api_key"},
		"an unknown key with project_id":               {"", `{"api_key":"phc_none","project_id":1}`, 401, "invalid_personal_api_key"},
		"a project that the personal key may not see":  {"", `{"api_key":"phx_one","project_id":2}`, 400, "invalid_project"},
		"a project that does not exist":                {"", `{"api_key":"phx_test","project_id":99}`, 400, "invalid_project"},
		"project_id beside a project key says nothing": {"", `{"api_key":"phc_two","project_id":"x"}`, 200, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, "POST", base+"/e?"+tc.query, tc.body)
			if got.status != tc.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tc.status)
			}
			if tc.status == 200 {
				if got.body != tc.want {
					t.Errorf("project %s, want %s", got.body, tc.want)
				}
				return
			}
			var face struct{ Code, Attr, Type string }
			if err := json.Unmarshal([]byte(got.body), &face); err != nil || face.Code != tc.want {
				t.Errorf("%s, want code %s", got.body, tc.want)
			}
			if (face.Attr == "project_id") != (tc.want == "invalid_project") {
				t.Errorf("%s: attr", got.body)
			}
		})
	}
	if got := call(t, "POST", base+"/e", `{"api_key":"phx_one","project_id":2}`); got.header.Get("X-Hidden") != "yes" {
		t.Error("ErrHiddenProject is missing")
	}
}

func TestPersonalKeysOfManagementPaths(t *testing.T) {
	t.Parallel()
	keys := webtest.DefaultKeys()
	keys.Projects["phc_two"] = auth.Project{ID: 2}
	keys.Principals["phx_read"] = &auth.Principal{KeyID: 2, Scopes: []string{"feature_flag:read"}, ProjectIDs: []int64{1}}
	base := webtest.Serve(t, keys, routesFunc(func(g *web.Router) {
		project := func(c *web.Call) error { return web.JSON(c.Ctx, c.Project.ID) }
		g.Manage("GET", "/api/projects/:project_id/flags", "feature_flag:read", project)
		g.Manage("POST", "/api/projects/:project_id/flags", "feature_flag:write", project)
		g.Manage("GET", "/api/local", "feature_flag:read", func(c *web.Call) error {
			p, err := c.CurrentProject()
			if err != nil {
				return err
			}
			return web.JSON(c.Ctx, p.ID)
		})
	}))
	read := "Authorization: Bearer phx_read"
	for name, tc := range map[string]struct {
		method, path, body, header string
		status                     int
		want                       string
	}{
		"the header":                                {"GET", "/api/projects/1/flags", "", bearer, 200, "1"},
		"the header in other letters":               {"GET", "/api/projects/1/flags", "", "Authorization: bEARER phx_test", 200, "1"},
		"the body":                                  {"POST", "/api/projects/1/flags", `{"personal_api_key":"phx_test"}`, "Content-Type: application/json", 200, "1"},
		"a form":                                    {"POST", "/api/projects/1/flags", `personal_api_key=phx_test&a=b`, "Content-Type: application/x-www-form-urlencoded", 200, "1"},
		"the query":                                 {"GET", "/api/projects/1/flags?personal_api_key=phx_test", "", "", 200, "1"},
		"none":                                      {"GET", "/api/projects/1/flags", "", "", 401, `{"type":"authentication_error","code":"not_authenticated","detail":"Authentication credentials were not provided.","attr":null}`},
		"another scheme is none":                    {"GET", "/api/projects/1/flags", "", "Authorization: Basic x", 401, `{"type":"authentication_error","code":"not_authenticated","detail":"Authentication credentials were not provided.","attr":null}`},
		"a wrong one in the header":                 {"GET", "/api/projects/1/flags?personal_api_key=phx_test", "", "Authorization: Bearer nope", 401, `{"type":"authentication_error","code":"invalid_personal_api_key","detail":"Personal API key found in request Authorization header is invalid.","attr":null}`},
		"a wrong one in the body":                   {"POST", "/api/projects/1/flags?personal_api_key=phx_test", `{"personal_api_key":"nope"}`, "Content-Type: application/json", 401, `{"type":"authentication_error","code":"invalid_personal_api_key","detail":"Personal API key found in request body is invalid.","attr":null}`},
		"a wrong one in the query":                  {"GET", "/api/projects/1/flags?personal_api_key=nope", "", "", 401, `{"type":"authentication_error","code":"invalid_personal_api_key","detail":"Personal API key found in request query string is invalid.","attr":null}`},
		"a project that does not exist":             {"GET", "/api/projects/99/flags", "", bearer, 404, `{"type":"invalid_request","code":"not_found","detail":"Project not found.","attr":null}`},
		"a project that the key may not see":        {"GET", "/api/projects/2/flags", "", read, 404, `{"type":"invalid_request","code":"not_found","detail":"Project not found.","attr":null}`},
		"a project that is no number":               {"GET", "/api/projects/abc/flags", "", bearer, 404, `{"type":"invalid_request","code":"not_found","detail":"Project not found.","attr":null}`},
		"a scope that the key has":                  {"GET", "/api/projects/1/flags", "", read, 200, "1"},
		"a scope that the key has not":              {"POST", "/api/projects/1/flags", "{}", read, 403, `{"type":"authentication_error","code":"permission_denied","detail":"API key missing required scope 'feature_flag:write'","attr":null}`},
		"the current project":                       {"GET", "/api/projects/@current/flags", "", bearer, 200, "1"},
		"the current project, escaped":              {"GET", "/api/projects/%40current/flags", "", bearer, 200, "1"},
		"a token says which project is meant":       {"GET", "/api/projects/@current/flags?token=phc_two", "", bearer, 200, "2"},
		"but not for a key that may not see it":     {"GET", "/api/projects/@current/flags?token=phc_two", "", read, 403, `{"type":"authentication_error","code":"permission_denied","detail":"API key does not have access to the project of this project key.","attr":null}`},
		"an unknown token":                          {"GET", "/api/projects/@current/flags?token=phc_none", "", bearer, 401, `{"type":"authentication_error","code":"invalid_api_key","detail":"Project API key invalid.","attr":null}`},
		"a path without a project has the current":  {"GET", "/api/local", "", bearer, 200, "1"},
		"or the one that a token names":             {"GET", "/api/local?token=phc_two&send_cohorts", "", bearer, 200, "2"},
		"a body that cannot be read is no key":      {"POST", "/api/projects/1/flags", `{"personal_api_key":`, "Content-Type: application/json", 401, `{"type":"authentication_error","code":"not_authenticated","detail":"Authentication credentials were not provided.","attr":null}`},
		"a personal_api_key deeper down is no key":  {"POST", "/api/projects/1/flags", `{"a":{"personal_api_key":"phx_test"}}`, "Content-Type: application/json", 401, `{"type":"authentication_error","code":"not_authenticated","detail":"Authentication credentials were not provided.","attr":null}`},
		"an empty header gives way to the query":    {"GET", "/api/projects/1/flags?personal_api_key=phx_test", "", "Authorization: Bearer ", 200, "1"},
		"of a repeated project the path still wins": {"GET", "/api/projects/1/flags?project_id=2", "", bearer, 200, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var headers []string
			if tc.header != "" {
				headers = append(headers, tc.header)
			}
			got := call(t, tc.method, base+tc.path, tc.body, headers...)
			if got.status != tc.status || got.body != tc.want {
				t.Errorf("%d %s\nwant %d %s", got.status, got.body, tc.status, tc.want)
			}
		})
	}
}

// A personal key is found in bodies of up to 256 KiB that are not compressed; in
// others it is not looked for, since nothing is known of their sender.
func TestPersonalKeyInLargeBodyIsNotSearched(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(func(g *web.Router) {
		g.Manage("POST", "/api/x", "", managed("x"))
	}))
	const limit = 256 << 10
	padded := func(n int) string {
		const head, tail = `{"personal_api_key":"phx_test","pad":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	form := func(n int) string {
		const head = "personal_api_key=phx_test&pad="
		return head + strings.Repeat("x", n-len(head))
	}
	const isForm, isJSON = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"
	for name, tc := range map[string]struct {
		body, kind, query, header string
		status                    int
	}{
		"JSON at the limit":                 {padded(limit), isJSON, "", "", 200},
		"JSON above it":                     {padded(limit + 1), isJSON, "", "", 401},
		"a form at the limit":               {form(limit), isForm, "", "", 200},
		"a form above it":                   {form(limit + 1), isForm, "", "", 401},
		"a large body with a key in query":  {padded(limit + 1), isJSON, "?personal_api_key=phx_test", "", 200},
		"a large body with a key in header": {padded(limit + 1), isJSON, "", bearer, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			headers := []string{tc.kind}
			if tc.header != "" {
				headers = append(headers, tc.header)
			}
			if got := call(t, "POST", base+"/api/x"+tc.query, tc.body, headers...); got.status != tc.status {
				t.Errorf("%d %.200s, want %d", got.status, got.body, tc.status)
			}
		})
	}
}
