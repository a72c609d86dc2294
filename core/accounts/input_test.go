package accounts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 201)
	cases := map[string]struct {
		method, path, body string
		code, attr         string
	}{
		"a body that is no JSON":                {"POST", "/api/projects/", `{"name": `, "parse_error", ""},
		"a body that is no object":              {"POST", "/api/projects/", `["name"]`, "invalid_input", ""},
		"a project without a name":              {"POST", "/api/projects/", `{}`, "required", "name"},
		"a project with no name at all":         {"POST", "/api/projects/", `{"name": null}`, "null", "name"},
		"a project with a blank name":           {"POST", "/api/projects/", `{"name": "  "}`, "blank", "name"},
		"a project with a name that is a list":  {"POST", "/api/projects/", `{"name": []}`, "invalid_input", "name"},
		"a project with a long name":            {"POST", "/api/projects/", `{"name": "` + long + `"}`, "max_length", "name"},
		"a project in no time zone":             {"POST", "/api/projects/", `{"name": "x", "timezone": "Mars"}`, "invalid_choice", "timezone"},
		"a switch that is none":                 {"PATCH", "/api/projects/1/", `{"anonymize_ips": "perhaps"}`, "invalid_input", "anonymize_ips"},
		"a project that moves to no time zone":  {"PATCH", "/api/projects/1/", `{"timezone": ""}`, "blank", "timezone"},
		"a project that loses its name":         {"PATCH", "/api/projects/1/", `{"name": "a\u0000b"}`, "null_characters_not_allowed", "name"},
		"a project key without a label":         {"POST", "/api/projects/1/keys/", `{}`, "required", "label"},
		"a project key that looks personal":     {"POST", "/api/projects/1/keys/", `{"label": "x", "key": "phx_something"}`, "invalid_input", "key"},
		"an address that is none":               {"PATCH", "/api/users/@me/", `{"email": "nobody"}`, "invalid_input", "email"},
		"an address that is taken":              {"PATCH", "/api/users/@me/", `{"email": "MEMBER@example.com"}`, "unique", "email"},
		"a first name that is too long":         {"PATCH", "/api/users/@me/", `{"first_name": "` + long + `"}`, "max_length", "first_name"},
		"to work in a project of others":        {"PATCH", "/api/users/@me/", `{"current_project": 3}`, "does_not_exist", "current_project"},
		"to work in no project":                 {"PATCH", "/api/users/@me/", `{"current_project": null}`, "null", "current_project"},
		"an organization without a name":        {"PATCH", "/api/organizations/@current/", `{"name": ""}`, "blank", "name"},
		"a level that is none":                  {"PATCH", "/api/organizations/@current/members/{member}/", `{"level": 9}`, "invalid_choice", "level"},
		"a level that is a word":                {"PATCH", "/api/organizations/@current/members/{member}/", `{"level": "admin"}`, "invalid_input", "level"},
		"a role without a name":                 {"POST", "/api/organizations/@current/roles/", `{}`, "required", "name"},
		"a role with a level that is none":      {"POST", "/api/organizations/@current/roles/", `{"name": "x", "feature_flags_access_level": 30}`, "invalid_choice", "feature_flags_access_level"},
		"a role with the level zero":            {"POST", "/api/organizations/@current/roles/", `{"name": "x", "feature_flags_access_level": 0}`, "invalid_choice", "feature_flags_access_level"},
		"an access level that is none":          {"PATCH", "/api/organizations/@current/resource_access/feature_flags/", `{"access_level": 22}`, "invalid_choice", "access_level"},
		"an access level that is null":          {"PATCH", "/api/organizations/@current/resource_access/feature_flags/", `{"access_level": null}`, "null", "access_level"},
		"a personal key without a label":        {"POST", "/api/personal_api_keys/", `{"scopes": ["*"]}`, "required", "label"},
		"a personal key without scopes":         {"POST", "/api/personal_api_keys/", `{"label": "x"}`, "required", "scopes"},
		"a personal key with no scope":          {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": []}`, "required", "scopes"},
		"a personal key with a strange scope":   {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["flag:read"]}`, "invalid_input", "scopes"},
		"scopes that are a text":                {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": "*"}`, "not_a_list", "scopes"},
		"a scope that is a list":                {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": [[]]}`, "invalid_input", "scopes__0"},
		"a personal key for a project of other": {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["*"], "project_ids": [3]}`, "does_not_exist", "project_ids"},
		"a project id that is none":             {"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["*"], "project_ids": ["a"]}`, "invalid_input", "project_ids__0"},
		"a personal key that loses its scopes":  {"PATCH", "/api/personal_api_keys/@current/", `{"scopes": []}`, "required", "scopes"},
		"a personal key that loses its label":   {"PATCH", "/api/personal_api_keys/@current/", `{"label": ""}`, "blank", "label"},
	}
	run(t, func(t *testing.T, w *world) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				got := w.want(t, http.StatusBadRequest, "owner", c.method, c.path, c.body)
				attr, _ := got.body["attr"].(string)
				if got.body["code"] != c.code || attr != c.attr {
					t.Errorf("got %s", got.text)
				}
			})
		}
	})
}

func TestBadInputOfExistingRoles(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const path = "/api/organizations/@current/roles/"
		made := w.want(t, http.StatusCreated, "owner", "POST", path, `{"name": "Growth"}`)
		role := path + made.body["id"].(string) + "/"
		w.want(t, http.StatusCreated, "owner", "POST", role+"role_memberships/", `{"user_uuid": "{member}"}`)
		cases := map[string]struct{ method, path, body, code, attr string }{
			"a name that is taken":                  {"POST", path, `{"name": "Growth"}`, "unique", "name"},
			"a name that becomes blank":             {"PATCH", role, `{"name": ""}`, "blank", "name"},
			"no user at all":                        {"POST", role + "role_memberships/", `{}`, "required", "user_uuid"},
			"a uuid that is none":                   {"POST", role + "role_memberships/", `{"user_uuid": "x"}`, "invalid_input", "user_uuid"},
			"an id that is none":                    {"POST", role + "role_memberships/", `{"user": "x"}`, "invalid_input", "user"},
			"a user of another organization":        {"POST", role + "role_memberships/", `{"user_uuid": "{stranger}"}`, "does_not_exist", "user_uuid"},
			"a user of another, by number":          {"POST", role + "role_memberships/", `{"user": {stranger id}}`, "does_not_exist", "user"},
			"a user caller has the role":            {"POST", role + "role_memberships/", `{"user_uuid": "{member}"}`, "unique", "user_uuid"},
			"a user caller has the role, by number": {"POST", role + "role_memberships/", `{"user": {member id}}`, "unique", "user"},
			"the uuid counts when there are both":   {"POST", role + "role_memberships/", `{"user": 1, "user_uuid": "{member}"}`, "unique", "user_uuid"},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				got := w.want(t, http.StatusBadRequest, "owner", c.method, c.path, c.body)
				if got.body["code"] != c.code || got.body["attr"] != c.attr {
					t.Errorf("got %s", got.text)
				}
			})
		}
	})
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	w := build(t, dbtest.SQLite(t))
	for _, c := range [][2]string{
		{"DELETE", "/api/users/@me/"}, {"PUT", "/api/projects/1/"}, {"POST", "/api/organizations/"},
		{"DELETE", "/api/organizations/@current/"}, {"POST", "/api/organizations/@current/resource_access/"},
	} {
		if got := w.want(t, http.StatusMethodNotAllowed, "owner", c[0], c[1], ""); got.body["code"] != "method_not_allowed" {
			t.Errorf("got %s", got.text)
		}
	}
}

func TestOutageIsUnavailable(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	w := build(t, d)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err) // the file may grow no more
	}
	for range 1000 {
		got := w.ask(t, "owner", "POST", "/api/organizations/@current/roles/", `{"name": "`+strings.Repeat("n", 180)+number(len(w.keys))+`"}`)
		if got.status == http.StatusCreated || got.status == http.StatusBadRequest {
			w.keys[number(len(w.keys))] = "" // another name for the next role
			continue
		}
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || got.body["type"] != "server_error" {
			t.Fatalf("got %d %s", got.status, got.text)
		}
		return
	}
	t.Fatal("the disk is never full")
}
