package flags_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

const (
	growth  = "018b0c1e-aaaa-7aaa-8bbb-000000000001"
	support = "018b0c1e-bbbb-7aaa-8bbb-000000000002"
)

// bobMayView gives Bob the level to view flags, and roles.
func bobMayView(h *server, roles ...auth.RoleLevel) {
	h.accounts.levels[2] = auth.Levels{Default: auth.CanView, Roles: roles}
	when := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range roles {
		h.accounts.roles[r.ID] = auth.Role{ID: r.ID, Name: "Role " + r.ID[9:13], FlagsAccessLevel: r.Level, CreatedAt: when,
			Members: []auth.RoleMember{{ID: "018b0c1e-cccc-7aaa-8bbb-000000000003", RoleID: r.ID, User: bob, JoinedAt: when, UpdatedAt: when}}}
	}
}

func TestEditRights(t *testing.T) {
	t.Parallel()
	given := func(h *server) { h.do("POST", path(1)+"role_access/", `{"role_id":"`+growth+`"}`).want(201) }
	cases := []struct {
		name   string
		levels auth.Levels
		before func(h *server)
		can    bool
	}{
		{"default level edit", auth.Levels{Default: auth.CanEdit}, nil, true},
		{"default level view, no role", auth.Levels{Default: auth.CanView}, nil, false},
		{"admin", auth.Levels{Default: auth.CanView, Admin: true}, nil, true},
		{"role with level edit", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: support, Level: auth.CanView}, {ID: growth, Level: auth.CanEdit}}}, nil, true},
		{"role with level view", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: growth, Level: auth.CanView}}}, nil, false},
		{"role with level view and access to the flag", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: growth, Level: auth.CanView}}}, given, true},
		{"another role has access to the flag", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: support, Level: auth.CanView}}}, given, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := onOne(t)
			h.accounts.roles[growth] = auth.Role{ID: growth}
			h.create(`{"key":"a"}`)
			if c.before != nil {
				c.before(h)
			}
			bobs := h.as("phx_bob")
			own := bobs.create(`{"key":"bobs"}`)
			h.accounts.levels[2] = c.levels
			if f := bobs.do("GET", path(1), "").flag(200); f.CanEdit != c.can {
				t.Errorf("got can_edit %v, want %v", f.CanEdit, c.can)
			}
			calls := []answer{
				bobs.patch(1, `{"name":"x"}`), bobs.do("PUT", path(1), `{"key":"a"}`), bobs.do("POST", path(1)+"rollback/", `{"version":1}`),
				bobs.do("POST", path(1)+"dashboard/", ``),
			}
			for i, a := range calls {
				if c.can {
					a.want(200)
				} else if a.fails(403, "permission_denied", ""); i == 0 && string(a.body) != `{"type":"authentication_error","code":"permission_denied","detail":"You don't have edit permissions for this feature flag.","attr":null}` {
					t.Errorf("got answer %s", a.body)
				}
			}
			if !bobs.do("GET", path(own.ID), "").flag(200).CanEdit {
				t.Error("got can_edit false for the creator")
			}
			bobs.patch(own.ID, `{"name":"x"}`).want(200)
		})
	}
}

func TestRoleAccess(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		bobMayView(h, auth.RoleLevel{ID: growth, Level: auth.CanView})
		h.create(`{"key":"a"}`)
		bobs := h.create(`{"key":"b"}`)
		access := path(1) + "role_access/"
		h.do("POST", access, `{}`).fails(400, "required", "role_id")
		h.do("POST", access, `{"role_id":"x"}`).fails(400, "invalid_input", "role_id")
		h.do("POST", access, `{"role_id":"`+support+`"}`).fails(400, "does_not_exist", "role_id")
		h.as("phx_bob").do("POST", access, `{"role_id":"`+growth+`"}`).fails(403, "permission_denied", "")
		h.do("POST", path(99)+"role_access/", `{"role_id":"`+growth+`"}`).fails(404, "not_found", "")
		var a struct {
			ID          int64
			FeatureFlag flag `json:"feature_flag"`
			Role        struct {
				ID, Name        string
				Level           int `json:"feature_flags_access_level"`
				Members         string
				AssociatedFlags string `json:"associated_flags"`
			}
			AddedAt   string `json:"added_at"`
			UpdatedAt string `json:"updated_at"`
		}
		h.do("POST", access, `{"role_id":"`+growth+`"}`).want(201).into(&a)
		if a.ID == 0 || a.FeatureFlag.Key != "a" || a.Role.ID != growth || a.Role.Level != 21 || a.AddedAt == "" {
			t.Errorf("created role access: %+v", a)
		}
		var members []struct {
			RoleID string `json:"role_id"`
			User   auth.User
		}
		if err := json.Unmarshal([]byte(a.Role.Members), &members); err != nil || len(members) != 1 || members[0].User.Email != "bob@corp.test" {
			t.Errorf("members %q: %v", a.Role.Members, err)
		}
		if a.Role.AssociatedFlags != `[{"id":1,"key":"a"}]` {
			t.Errorf("associated flags %q", a.Role.AssociatedFlags)
		}
		h.do("POST", access, `{"role_id":"`+growth+`"}`).fails(400, "unique", "role_id")
		h.as("phx_bob").patch(1, `{"name":"by bob"}`).want(200)
		h.as("phx_bob").patch(bobs.ID, `{"name":"by bob"}`).fails(403, "permission_denied", "")
		var list page[map[string]any]
		h.as("phx_bob").do("GET", access+"?limit=1&role=x", "").want(200).into(&list)
		if list.Count != 1 || len(list.Results) != 1 {
			t.Errorf("list: %+v", list)
		}
		h.do("GET", access+itoa(a.ID)+"/", "").want(200)
		h.do("GET", path(2)+"role_access/"+itoa(a.ID)+"/", "").fails(404, "not_found", "")
		h.do("PATCH", access+itoa(a.ID)+"/", `{}`).fails(405, "method_not_allowed", "")
		h.as("phx_bob").do("DELETE", access+itoa(a.ID)+"/", "").fails(403, "permission_denied", "")
		if gone := h.do("DELETE", access+itoa(a.ID)+"/", "").want(204); len(gone.body) != 0 {
			t.Errorf("DELETE answers %q", gone.body)
		}
		h.do("DELETE", access+itoa(a.ID)+"/", "").fails(404, "not_found", "")
		h.as("phx_bob").patch(1, `{"name":"again"}`).fails(403, "permission_denied", "")
		h.do("POST", access, `{"role_id":"`+growth+`"}`).want(201)
		delete(h.accounts.roles, growth)
		h.do("GET", access, "").want(200).into(&list)
		if list.Count != 0 {
			t.Errorf("the access of a deleted role is listed: %+v", list)
		}
	})
}

// A cohort decides which persons match a flag, and a dashboard belongs to a flag:
// a member who may only view flags changes neither, and creates no flags.
func TestViewersChangeNothingThatFlagsUse(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		own := h.as("phx_bob").create(`{"key":"bobs"}`)
		bobMayView(h, auth.RoleLevel{ID: growth, Level: auth.CanView})
		bobs := h.as("phx_bob")
		filters := `{"properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"plan","type":"person","value":"%s","operator":"exact"}]}]}}`
		const cohorts, dashboards = "/api/projects/1/cohorts/", "/api/projects/1/dashboards/"
		var cohort struct{ ID int64 }
		h.do("POST", cohorts, `{"name":"Paying","filters":`+strings.Replace(filters, "%s", "paid", 1)+`}`).want(201).into(&cohort)
		h.create(`{"key":"a","filters":{"groups":[{"properties":[{"key":"id","type":"cohort","value":` + itoa(cohort.ID) + `}]}]}}`)
		dashboard := func(key string) string {
			var list page[struct {
				ID   int64
				Name string
			}]
			h.do("GET", dashboards, "").want(200).into(&list)
			for _, d := range list.Results {
				if strings.Contains(d.Name, " "+key+" ") {
					return dashboards + itoa(d.ID) + "/"
				}
			}
			t.Fatalf("no dashboard of flag %s", key)
			return ""
		}
		one := cohorts + itoa(cohort.ID) + "/"
		for _, r := range []struct{ method, path, body string }{
			{"POST", "/api/projects/1/feature_flags/", `{"key":"new"}`},
			{"POST", cohorts, `{"name":"Free","filters":` + strings.Replace(filters, "%s", "free", 1) + `}`},
			{"PATCH", one, `{"filters":` + strings.Replace(filters, "%s", "free", 1) + `}`},
			{"PATCH", one, `not JSON`},
			{"PATCH", one, `{"deleted":true}`},
			{"PUT", one, `{"name":"x"}`},
			{"PATCH", dashboard("a"), `{"name":"x"}`},
			{"DELETE", dashboard("a"), ``},
			{"DELETE", dashboard("bobs"), ``},
		} {
			bobs.do(r.method, r.path, r.body).fails(403, "permission_denied", "")
		}
		bobs.do("GET", one, "").want(200)
		bobs.do("PATCH", dashboard("bobs"), `{"description":"mine"}`).want(200)
		bobs.patch(own.ID, `{"name":"mine"}`).want(200)
		bobMayView(h, auth.RoleLevel{ID: growth, Level: auth.CanEdit})
		bobs.do("PATCH", one, `{"name":"x"}`).want(200)
		bobs.do("DELETE", dashboard("a"), "").want(204)
		bobs.create(`{"key":"new"}`)
	})
}
