package accounts_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestMe(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		got := w.want(t, http.StatusOK, "admin", "GET", "/api/users/@me/", "")
		if want := "id uuid distinct_id first_name email is_email_verified last_name role_at_organization hedgehog_config is_operator organization project team"; names(t, got.text) != want {
			t.Errorf("got %s", got.text)
		}
		if got.body["is_operator"] != false {
			t.Errorf("an admin of an organization is an operator of the server: %s", got.text)
		}
		org, _ := got.body["organization"].(map[string]any)
		project, _ := got.body["project"].(map[string]any)
		if org["id"] != w.first.Organization.ID || org["membership_level"] != 8.0 || project["id"] != 1.0 || project["api_token"] != w.first.ProjectKey {
			t.Errorf("got %s", got.text)
		}
		got = w.want(t, http.StatusOK, "admin", "PATCH", "/api/users/@me/", `{"first_name": " Ada ", "email": "ADMIN@example.com", "current_project": 2, "uuid": "ignored"}`)
		team, _ := got.body["team"].(map[string]any)
		if got.body["first_name"] != "Ada" || got.body["email"] != "admin@example.com" || team["id"] != 2.0 {
			t.Errorf("got %s", got.text)
		}
		if again := w.want(t, http.StatusOK, "admin", "GET", "/api/users/@me", ""); again.text != got.text {
			t.Errorf("answered %s, is %s", got.text, again.text)
		}
		if current := w.want(t, http.StatusOK, "admin", "GET", "/api/projects/@current/", ""); current.body["id"] != 2.0 {
			t.Errorf("got %s", current.text)
		}
		w.want(t, http.StatusOK, "admin", "PATCH", "/api/users/@me/", `{"first_name": ""}`)
	})
}

func TestAnOrganizationWithoutProjectsHasNoCurrentOne(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		w.want(t, http.StatusNoContent, "owner", "DELETE", "/api/projects/1/", "")
		w.want(t, http.StatusNoContent, "owner", "DELETE", "/api/projects/2/", "")
		if got := w.want(t, http.StatusOK, "owner", "GET", "/api/users/@me/", ""); got.body["project"] != nil || got.body["team"] != nil {
			t.Errorf("got %s", got.text)
		}
		if got := w.want(t, http.StatusNotFound, "owner", "GET", "/api/projects/@current/", ""); got.body["detail"] != "Project not found." {
			t.Errorf("got %s", got.text)
		}
		if _, err := w.auth.ProjectByKey(t.Context(), w.first.ProjectKey); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("the key of a closed project: %v", err)
		}
	})
}

func TestProjects(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		made := w.want(t, http.StatusCreated, "admin", "POST", "/api/projects/", `{"name": " Shop ", "timezone": "Europe/Berlin", "anonymize_ips": true}`)
		if names(t, made.text) != "id organization name api_token timezone anonymize_ips created_at secret_api_token secret_api_token_backup" {
			t.Errorf("got %s", made.text)
		}
		token, _ := made.body["api_token"].(string)
		if p, err := w.auth.ProjectByKey(t.Context(), token); err != nil || p.Name != "Shop" || !p.AnonymizeIPs || p.Timezone != "Europe/Berlin" {
			t.Errorf("the token leads to %+v, %v", p, err)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", made.body["created_at"].(string)); err != nil {
			t.Error(err)
		}
		plain := w.want(t, http.StatusCreated, "owner", "POST", "/api/projects", `{"name": "Plain"}`)
		if plain.body["timezone"] != "UTC" || plain.body["anonymize_ips"] != false {
			t.Errorf("got %s", plain.text)
		}
		got := w.want(t, http.StatusOK, "owner", "PATCH", "/api/projects/4/", `{"name": "Store", "timezone": "Asia/Tokyo", "anonymize_ips": false, "id": 9, "api_token": "phc_mine"}`)
		if got.body["id"] != 4.0 || got.body["name"] != "Store" || got.body["timezone"] != "Asia/Tokyo" || got.body["anonymize_ips"] != false || got.body["api_token"] != token {
			t.Errorf("got %s", got.text)
		}
		if read := w.want(t, http.StatusOK, "member", "GET", "/api/projects/4", ""); read.text != got.text {
			t.Errorf("got %s", read.text)
		}
		if keys := w.want(t, http.StatusOK, "owner", "GET", "/api/projects/4/keys/", ""); true {
			w.want(t, http.StatusNoContent, "owner", "DELETE", "/api/projects/4/keys/"+number(keys.results()[0]["id"])+"/", "")
		}
		if read := w.want(t, http.StatusOK, "member", "GET", "/api/projects/4", ""); read.body["api_token"] != nil {
			t.Errorf("a project without a good key has no token: %s", read.text)
		}
	})
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		for range 3 {
			w.want(t, http.StatusCreated, "owner", "POST", "/api/projects/", `{"name": "More"}`)
		}
		got := w.want(t, http.StatusOK, "owner", "GET", "/api/projects/?limit=2&offset=2", "")
		if names(t, got.text) != "count next previous results" || got.body["count"] != 5.0 || len(got.results()) != 2 {
			t.Errorf("got %s", got.text)
		}
		if got.body["next"] != w.url+"/api/projects/?limit=2&offset=4" || got.body["previous"] != w.url+"/api/projects/?limit=2" {
			t.Errorf("got %s", got.text)
		}
		if beyond := w.want(t, http.StatusOK, "owner", "GET", "/api/projects/?offset=99", ""); string(mustMarshal(beyond.body["results"])) != "[]" {
			t.Errorf("got %s", beyond.text)
		}
		if theirs := w.want(t, http.StatusOK, "stranger", "GET", "/api/projects/", ""); theirs.body["count"] != 1.0 || theirs.results()[0]["name"] != "Theirs" {
			t.Errorf("got %s", theirs.text)
		}
	})
}

func TestProjectKeys(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		made := w.want(t, http.StatusCreated, "admin", "POST", "/api/projects/@current/keys/", `{"label": "app", "key": "phc_brought_along"}`)
		if names(t, made.text) != "id key label created_by created_at revoked_at" || made.body["key"] != "phc_brought_along" || made.body["revoked_at"] != nil {
			t.Errorf("got %s", made.text)
		}
		if _, err := w.auth.ProjectByKey(t.Context(), "phc_brought_along"); err != nil {
			t.Error(err)
		}
		fresh := w.want(t, http.StatusCreated, "admin", "POST", "/api/projects/1/keys", `{"label": "web"}`)
		if key, _ := fresh.body["key"].(string); !strings.HasPrefix(key, "phc_") || len(key) != 47 {
			t.Errorf("got %s", fresh.text)
		}
		w.want(t, http.StatusNotFound, "admin", "DELETE", "/api/projects/2/keys/"+number(made.body["id"])+"/", "")
		w.want(t, http.StatusNoContent, "admin", "DELETE", "/api/projects/1/keys/"+number(made.body["id"])+"/", "")
		w.want(t, http.StatusNotFound, "admin", "DELETE", "/api/projects/1/keys/"+number(made.body["id"])+"/", "")
		if _, err := w.auth.ProjectByKey(t.Context(), "phc_brought_along"); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a revoked key: %v", err)
		}
		all := w.want(t, http.StatusOK, "member", "GET", "/api/projects/1/keys/", "").results()
		maker, _ := all[1]["created_by"].(map[string]any)
		if len(all) != 3 || all[0]["created_by"] != nil || maker["email"] != "admin@example.com" || all[1]["revoked_at"] == nil || all[2]["revoked_at"] != nil {
			t.Errorf("got %v", all)
		}
	})
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		listed := w.want(t, http.StatusOK, "member", "GET", "/api/organizations/", "")
		if listed.body["count"] != 1.0 || listed.results()[0]["id"] != w.first.Organization.ID || listed.results()[0]["membership_level"] != 1.0 {
			t.Errorf("a key has one organization: %s", listed.text)
		}
		got := w.want(t, http.StatusOK, "admin", "PATCH", "/api/organizations/@current/", `{"name": "Ours"}`)
		if names(t, got.text) != "id name created_at updated_at membership_level" || got.body["name"] != "Ours" {
			t.Errorf("got %s", got.text)
		}
		if read := w.want(t, http.StatusOK, "admin", "GET", "/api/organizations/"+strings.ToUpper(w.first.Organization.ID), ""); read.text != got.text {
			t.Errorf("got %s", read.text)
		}
	})
}

func TestMembersAreNamedByIDOrUUID(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const path = "/api/organizations/@current/members/"
		all := w.want(t, http.StatusOK, "member", "GET", path, "")
		if all.body["count"] != 3.0 {
			t.Errorf("got %s", all.text)
		}
		one := w.want(t, http.StatusOK, "member", "GET", path+"{member}/", "")
		if names(t, one.text) != "id user level joined_at updated_at" || w.want(t, http.StatusOK, "member", "GET", path+"{member id}", "").text != one.text {
			t.Errorf("got %s", one.text)
		}
		if same := w.want(t, http.StatusOK, "admin", "PATCH", path+"{member}/", `{}`); same.text != one.text {
			t.Errorf("nothing was asked for: %s", same.text)
		}
		for _, id := range []string{"{stranger}", "{stranger id}", "0", "-1", "x", "99999999999999999999"} {
			w.want(t, http.StatusNotFound, "owner", "PATCH", path+id+"/", `{"level": 1}`)
		}
		w.want(t, http.StatusNoContent, "admin", "DELETE", path+"{member id}/", "")
		w.want(t, http.StatusUnauthorized, "member", "GET", path, "") // the keys went with the member
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const path = "/api/organizations/@current/roles/"
		made := w.want(t, http.StatusCreated, "admin", "POST", path, `{"name": "Growth"}`)
		if names(t, made.text) != "id name feature_flags_access_level created_at created_by members associated_flags" {
			t.Errorf("got %s", made.text)
		}
		if made.body["feature_flags_access_level"] != 37.0 || made.body["members"] != "[]" || made.body["associated_flags"] != `[{"id":0,"key":"new-nav"},{"id":1,"key":"<b>"}]` {
			t.Errorf("got %s", made.text)
		}
		role := path + made.body["id"].(string) + "/"
		got := w.want(t, http.StatusOK, "admin", "PATCH", role, `{"feature_flags_access_level": 21, "name": "Growth & co", "members": []}`)
		if got.body["name"] != "Growth & co" || got.body["feature_flags_access_level"] != 21.0 {
			t.Errorf("got %s", got.text)
		}

		member := w.want(t, http.StatusCreated, "admin", "POST", role+"role_memberships/", `{"user_uuid": "{member}"}`)
		w.want(t, http.StatusCreated, "admin", "POST", role+"role_memberships/", `{"user": 1}`)
		if names(t, member.text) != "id role_id user joined_at updated_at" {
			t.Errorf("got %s", member.text)
		}
		if all := w.want(t, http.StatusOK, "member", "GET", role+"role_memberships?limit=1", ""); all.body["count"] != 2.0 || len(all.results()) != 1 {
			t.Errorf("got %s", all.text)
		}
		read := w.want(t, http.StatusOK, "member", "GET", role, "")
		var members []map[string]any
		must(t, json.Unmarshal([]byte(read.body["members"].(string)), &members))
		if len(members) != 2 || members[0]["id"] != member.body["id"] {
			t.Errorf("got %s", read.text)
		}
		if kept := w.want(t, http.StatusOK, "kept", "GET", path, ""); kept.results()[0]["associated_flags"] != `[{"id":0,"key":"new-nav"}]` {
			t.Errorf("a key that is kept to a project sees flags of others: %s", kept.text)
		}
		w.want(t, http.StatusNotFound, "stranger", "GET", role, "")
		w.want(t, http.StatusNotFound, "stranger", "DELETE", role, "")
		w.want(t, http.StatusNoContent, "admin", "DELETE", role+"role_memberships/"+member.body["id"].(string)+"/", "")
		w.want(t, http.StatusNotFound, "admin", "DELETE", role+"role_memberships/"+member.body["id"].(string)+"/", "")
		w.want(t, http.StatusNoContent, "admin", "DELETE", role, "")
		w.want(t, http.StatusNotFound, "admin", "GET", role, "")
	})
}

func TestTheDefaultLevelDecidesForFlags(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const path = "/api/organizations/@current/resource_access/"
		if got := w.want(t, http.StatusOK, "member", "GET", path, ""); string(mustMarshal(got.body["results"])) != `[{"access_level":37,"resource":"feature_flags"}]` {
			t.Errorf("got %s", got.text)
		}
		if got := w.want(t, http.StatusOK, "admin", "PATCH", path+"feature_flags/", `{"access_level": 21}`); got.text != `{"resource":"feature_flags","access_level":21}` {
			t.Errorf("got %s", got.text)
		}
		caller, err := w.auth.PrincipalByKey(t.Context(), w.keys["member"])
		must(t, err)
		if levels, err := w.auth.Levels(t.Context(), caller); err != nil || levels.CanEdit(false, nil) {
			t.Errorf("%+v, %v", levels, err)
		}
		if role := w.want(t, http.StatusCreated, "admin", "POST", "/api/organizations/@current/roles/", `{"name": "New"}`); role.body["feature_flags_access_level"] != 21.0 {
			t.Errorf("a role begins with the default: %s", role.text)
		}
		w.want(t, http.StatusNotFound, "admin", "PATCH", path+"actions/", `{"access_level": 21}`)
	})
}

func TestPersonalKeys(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		const path = "/api/personal_api_keys/"
		made := w.want(t, http.StatusCreated, "member", "POST", path, `{"label": "ci", "scopes": ["user:write", "feature_flag:read"], "project_ids": [1]}`)
		if names(t, made.text) != "id label value mask_value organization_id scopes project_ids created_at last_used_at expires_at" {
			t.Errorf("got %s", made.text)
		}
		secret, _ := made.body["value"].(string)
		w.keys["ci"] = secret
		one := path + number(made.body["id"]) + "/"
		if got := w.want(t, http.StatusOK, "member", "GET", one, ""); got.body["value"] != nil || strings.Contains(got.text, secret) || got.body["mask_value"] != "phx_..."+secret[len(secret)-4:] {
			t.Errorf("the secret is shown once: %s", got.text)
		}
		if got := w.want(t, http.StatusOK, "ci", "GET", path+"@current", ""); got.body["id"] != made.body["id"] {
			t.Errorf("got %s", got.text)
		}
		w.want(t, http.StatusNotFound, "admin", "GET", one, "") // a key is its user's own

		w.want(t, http.StatusForbidden, "ci", "POST", path, `{"label": "x", "scopes": ["*"]}`)
		w.want(t, http.StatusForbidden, "ci", "PATCH", one, `{"scopes": ["user:write", "project:read"]}`)
		w.want(t, http.StatusForbidden, "ci", "PATCH", one, `{"project_ids": []}`)
		strong := path + number(w.want(t, http.StatusOK, "member", "GET", path+"@current/", "").body["id"]) + "/"
		w.want(t, http.StatusForbidden, "ci", "PATCH", strong, `{"label": "mine"}`)
		w.want(t, http.StatusForbidden, "ci", "DELETE", strong, "")
		got := w.want(t, http.StatusOK, "ci", "PATCH", path+"@current/", `{"label": "deploys", "scopes": ["user:write"]}`)
		if got.body["label"] != "deploys" || string(mustMarshal(got.body["scopes"])) != `["user:write"]` {
			t.Errorf("got %s", got.text)
		}
		if got := w.want(t, http.StatusOK, "member", "PATCH", one, `{"project_ids": []}`); string(mustMarshal(got.body["project_ids"])) != "[]" {
			t.Errorf("got %s", got.text)
		}
		w.want(t, http.StatusNoContent, "ci", "DELETE", path+"@current/", "")
		w.want(t, http.StatusUnauthorized, "ci", "GET", path, "")
		w.want(t, http.StatusNotFound, "member", "PATCH", one, `{"label": "x"}`)
		if all := w.want(t, http.StatusOK, "member", "GET", path, ""); all.body["count"] != 1.0 {
			t.Errorf("a revoked key is listed: %s", all.text)
		}
	})
}

// A user in two organizations has keys in both, and a key manages only those
// of its own.
func TestKeysOfAnotherOrganizationAreNotFound(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, w *world) {
		must(t, w.auth.AddMember(t.Context(), w.other.ID, w.users["owner"].ID, auth.LevelOwner))
		w.keys["owner there"] = w.key(t, "owner", auth.NewPersonalKey{OrganizationID: w.other.ID, Scopes: []string{"*"}})
		there := w.want(t, http.StatusOK, "owner there", "GET", "/api/personal_api_keys/", "")
		if there.body["count"] != 1.0 {
			t.Errorf("got %s", there.text)
		}
		id := number(there.results()[0]["id"])
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			w.want(t, http.StatusNotFound, "owner", method, "/api/personal_api_keys/"+id+"/", "")
		}
		w.want(t, http.StatusNotFound, "owner there", "GET", "/api/projects/1/", "")
		w.want(t, http.StatusNotFound, "owner there", "GET", "/api/organizations/{org}/", "")
	})
}

func TestRolesWithoutFlags(t *testing.T) {
	t.Parallel()
	w := build(t, dbtest.SQLite(t))
	w.url = webtest.Serve(t, w.auth, accounts.NewHTTP(w.auth, nil, nil))
	if got := w.want(t, http.StatusCreated, "owner", "POST", "/api/organizations/@current/roles/", `{"name": "x"}`); got.body["associated_flags"] != "[]" {
		t.Errorf("got %s", got.text)
	}
}

func number(v any) string { return string(mustMarshal(v)) }

func mustMarshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
