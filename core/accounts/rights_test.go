package accounts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// callers are the columns below. The stranger owns another organization;
// scopeless has a key with another scope, keyless has none.
var callers = []string{"keyless", "stranger", "scopeless", "member", "admin", "owner"}

func TestPermissions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		method, path, body string
		status             [6]int
	}{
		{"GET", "/api/users/@me/", "", [6]int{401, 200, 403, 200, 200, 200}},
		{"PATCH", "/api/users/@me/", `{}`, [6]int{401, 200, 403, 200, 200, 200}},
		{"GET", "/api/personal_api_keys/", "", [6]int{401, 200, 403, 200, 200, 200}},
		{"GET", "/api/personal_api_keys/@current/", "", [6]int{401, 200, 200, 200, 200, 200}},
		{"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["user:read"]}`, [6]int{401, 201, 403, 201, 201, 201}},
		{"PATCH", "/api/personal_api_keys/@current/", `{"label": "y"}`, [6]int{401, 200, 403, 200, 200, 200}},
		{"GET", "/api/personal_api_keys/1/", "", [6]int{401, 404, 403, 404, 404, 200}},
		{"DELETE", "/api/personal_api_keys/999/", "", [6]int{401, 404, 403, 404, 404, 404}},

		{"GET", "/api/projects/", "", [6]int{401, 200, 403, 200, 200, 200}},
		{"POST", "/api/projects/", `{"name": "New"}`, [6]int{401, 201, 403, 403, 201, 201}},
		{"GET", "/api/projects/1/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"PATCH", "/api/projects/1/", `{"name": "Shop"}`, [6]int{401, 404, 403, 403, 200, 200}},
		{"GET", "/api/projects/1/keys/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"POST", "/api/projects/1/keys/", `{"label": "x"}`, [6]int{401, 404, 403, 403, 201, 201}},
		{"DELETE", "/api/projects/1/keys/999/", "", [6]int{401, 404, 403, 403, 404, 404}},
		{"DELETE", "/api/projects/999/", "", [6]int{401, 404, 404, 404, 404, 404}},
		{"DELETE", "/api/projects/2/", "", [6]int{401, 404, 403, 403, 204, 404}},

		{"GET", "/api/organizations/", "", [6]int{401, 200, 403, 200, 200, 200}},
		{"GET", "/api/organizations/{org}/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"PATCH", "/api/organizations/{org}/", `{"name": "Ours"}`, [6]int{401, 404, 403, 403, 200, 200}},
		{"GET", "/api/organizations/{org}/members/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"GET", "/api/organizations/{org}/members/{member}/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"PATCH", "/api/organizations/{org}/members/{member}/", `{"level": 1}`, [6]int{401, 404, 403, 403, 200, 200}},
		{"DELETE", "/api/organizations/{org}/members/{owner}/", "", [6]int{401, 404, 403, 403, 403, 409}},
		{"GET", "/api/organizations/{org}/resource_access/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"GET", "/api/organizations/{org}/resource_access/feature_flags/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"PATCH", "/api/organizations/{org}/resource_access/feature_flags/", `{"access_level": 21}`, [6]int{401, 404, 403, 403, 200, 200}},
		{"GET", "/api/organizations/{org}/roles/", "", [6]int{401, 404, 403, 200, 200, 200}},
		{"POST", "/api/organizations/{org}/roles/", `{}`, [6]int{401, 404, 403, 403, 400, 400}},
		{"GET", "/api/organizations/{org}/roles/none/", "", [6]int{401, 404, 403, 404, 404, 404}},
		{"PATCH", "/api/organizations/{org}/roles/none/", `{}`, [6]int{401, 404, 403, 403, 404, 404}},
		{"DELETE", "/api/organizations/{org}/roles/none/", "", [6]int{401, 404, 403, 403, 404, 404}},
		{"GET", "/api/organizations/{org}/roles/none/role_memberships/", "", [6]int{401, 404, 403, 404, 404, 404}},
		{"POST", "/api/organizations/{org}/roles/none/role_memberships/", `{}`, [6]int{401, 404, 403, 403, 400, 400}},
		{"DELETE", "/api/organizations/{org}/roles/none/role_memberships/none/", "", [6]int{401, 404, 403, 403, 404, 404}},
	}
	run(t, func(t *testing.T, w *world) {
		for _, c := range cases {
			for i, caller := range callers {
				path := c.path
				if i%2 == 0 {
					path = strings.TrimSuffix(path, "/") // one and the same
				}
				got := w.ask(t, caller, c.method, path, c.body)
				if got.status != c.status[i] {
					t.Errorf("%s %s as %s: %d %s, want %d", c.method, path, caller, got.status, got.text, c.status[i])
				}
				if got.status >= 400 && names(t, got.text) != "type code detail attr" {
					t.Errorf("%s %s as %s: not an error of the management face: %s", c.method, path, caller, got.text)
				}
			}
		}
	})
}

func TestReadingScopesDoNotWrite(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		for _, path := range []string{"/api/users/@me/", "/api/projects/1/", "/api/organizations/@current/", "/api/organizations/@current/roles/"} {
			w.want(t, http.StatusOK, "reader", "GET", path, "")
		}
		for _, c := range [][2]string{
			{"PATCH /api/users/@me/", "user:write"}, {"POST /api/personal_api_keys/", "user:write"},
			{"POST /api/projects/", "project:write"}, {"POST /api/projects/1/keys/", "project:write"},
			{"PATCH /api/organizations/@current/", "organization:write"}, {"DELETE /api/organizations/@current/members/1/", "organization:write"},
			{"PATCH /api/organizations/@current/resource_access/feature_flags/", "organization:write"},
			{"POST /api/organizations/@current/roles/", "role:write"},
		} {
			method, path, _ := strings.Cut(c[0], " ")
			got := w.want(t, http.StatusForbidden, "reader", method, path, "")
			if want := "API key missing required scope '" + c[1] + "'"; got.body["detail"] != want || got.body["code"] != "permission_denied" {
				t.Errorf("%s: %s", c[0], got.text)
			}
		}
	})
}

func TestRestrictedKeyStaysInItsProjects(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		if got := w.want(t, http.StatusOK, "kept", "GET", "/api/projects/", ""); got.body["count"] != 1.0 || got.results()[0]["id"] != 1.0 {
			t.Errorf("sees %s", got.text)
		}
		got := w.want(t, http.StatusForbidden, "kept", "GET", "/api/projects/2/", "")
		if got.body["detail"] != "API key does not have access to the requested project: ID 2." {
			t.Errorf("got %s", got.text)
		}
		w.want(t, http.StatusForbidden, "kept", "POST", "/api/projects/", `{"name": "Third"}`)
		got = w.want(t, http.StatusBadRequest, "kept", "PATCH", "/api/users/@me/", `{"current_project": 2}`)
		if got.body["code"] != "does_not_exist" || got.body["attr"] != "current_project" {
			t.Errorf("got %s", got.text)
		}
		got = w.want(t, http.StatusCreated, "kept", "POST", "/api/personal_api_keys/", `{"label": "child", "scopes": ["feature_flag:read"]}`)
		if ids, _ := got.body["project_ids"].([]any); len(ids) != 1 || ids[0] != 1.0 {
			t.Errorf("a key that is kept makes keys that are: %s", got.text)
		}
		for _, projects := range []string{"[]", "[1, 2]", "[2]"} {
			w.want(t, http.StatusForbidden, "kept", "POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["feature_flag:read"], "project_ids": `+projects+`}`)
		}
	})
}

func TestRightsCannotBeRaised(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const members = "/api/organizations/@current/members/"
		for _, c := range []struct{ caller, method, user, body string }{
			{"admin", "PATCH", "{member}", `{"level": 15}`},
			{"admin", "PATCH", "{admin}", `{"level": 15}`},
			{"admin", "PATCH", "{owner}", `{"level": 1}`},
			{"admin", "DELETE", "{owner}", ""},
			{"member", "PATCH", "{member}", `{"level": 8}`},
			{"member", "DELETE", "{admin}", ""},
		} {
			w.want(t, http.StatusForbidden, c.caller, c.method, members+c.user+"/", c.body)
		}
		if got := w.want(t, http.StatusConflict, "owner", "PATCH", members+"{owner}/", `{"level": 1}`); got.body["code"] != "last_owner" {
			t.Errorf("got %s", got.text)
		}
		if got := w.want(t, http.StatusOK, "admin", "PATCH", members+"{member}/", `{"level": 8}`); got.body["level"] != 8.0 {
			t.Errorf("got %s", got.text)
		}
		if got := w.want(t, http.StatusOK, "owner", "PATCH", members+"{admin}/", `{"level": 15}`); got.body["level"] != 15.0 {
			t.Errorf("got %s", got.text)
		}
		w.want(t, http.StatusOK, "owner", "PATCH", members+"{owner}/", `{"level": 1}`)
		w.want(t, http.StatusForbidden, "owner", "PATCH", members+"{admin}/", `{"level": 1}`)
		w.want(t, http.StatusNoContent, "owner", "DELETE", members+"{owner}/", "") // callers may leave
		w.want(t, http.StatusUnauthorized, "owner", "GET", members, "")
	})
}

// TestAddressesOfOthersCannotBeTested changes the address of a user to free ones,
// and to taken ones of the own and of another organization.
func TestAddressesOfOthersCannotBeTested(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		for _, caller := range []string{"member", "admin", "stranger"} {
			free := w.want(t, http.StatusForbidden, caller, "PATCH", "/api/users/@me/", `{"email": "free@example.com"}`)
			for _, taken := range []string{"stranger@example.com", "member@example.com", "admin@example.com"} {
				if taken == caller+"@example.com" {
					w.want(t, http.StatusOK, caller, "PATCH", "/api/users/@me/", `{"email": " `+strings.ToUpper(taken)+` "}`)
					continue
				}
				if got := w.ask(t, caller, "PATCH", "/api/users/@me/", `{"email": "`+taken+`"}`); got.status != free.status || got.text != free.text {
					t.Errorf("%s as %s: %d %s, and for a free one %d %s", taken, caller, got.status, got.text, free.status, free.text)
				}
			}
		}
		if got := w.want(t, http.StatusOK, "owner", "PATCH", "/api/users/@me/", `{"email": "New@example.com"}`); got.body["email"] != "new@example.com" {
			t.Errorf("an operator: %s", got.text)
		}
		w.want(t, http.StatusForbidden, "narrow", "PATCH", "/api/users/@me/", `{"email": "again@example.com"}`)
	})
}

// TestRestrictedKeysDoNotChangeTheOrganization uses a key of the owner that is
// restricted to a project.
func TestRestrictedKeysDoNotChangeTheOrganization(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		w.want(t, http.StatusOK, "kept", "GET", "/api/organizations/@current/", "")
		w.want(t, http.StatusForbidden, "kept", "PATCH", "/api/organizations/@current/", `{"name": "Ours"}`)
		w.want(t, http.StatusForbidden, "kept", "PATCH", "/api/organizations/@current/members/{member}/", `{"level": 15}`)
		w.want(t, http.StatusForbidden, "kept", "POST", "/api/organizations/@current/roles/", `{"name": "x"}`)
		w.want(t, http.StatusOK, "kept", "PATCH", "/api/projects/1/", `{"name": "Shop"}`)
	})
}

// TestAnswersWithKeysAreNotStored checks that caches keep no answer that shows a
// key.
func TestAnswersWithKeysAreNotStored(t *testing.T) {
	t.Parallel()
	w := build(t, dbtest.SQLite(t))
	for _, c := range [][3]string{
		{"POST", "/api/personal_api_keys/", `{"label": "x", "scopes": ["user:read"]}`}, {"POST", "/api/projects/1/keys/", `{"label": "x"}`},
		{"GET", "/api/projects/1/keys/", ""}, {"GET", "/api/projects/", ""}, {"POST", "/api/projects/", `{"name": "New"}`}, {"GET", "/api/users/@me/", ""},
	} {
		got := w.ask(t, "owner", c[0], c[1], c[2])
		if got.status >= 300 || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d, Cache-Control %q, want no-store", c[0], c[1], got.status, got.header.Get("Cache-Control"))
		}
	}
}
