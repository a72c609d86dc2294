package flags_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

const (
	growth  = "018b0c1e-aaaa-7aaa-8bbb-000000000001"
	support = "018b0c1e-bbbb-7aaa-8bbb-000000000002"
)

// as Bob: a member of an organization in which flags are to be viewed.
func bobMayView(h *house, roles ...auth.RoleLevel) {
	h.people.levels[2] = auth.Levels{Default: auth.CanView, Roles: roles}
	when := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range roles {
		h.people.roles[r.ID] = auth.Role{ID: r.ID, Name: "Role " + r.ID[9:13], FlagsAccessLevel: r.Level, CreatedAt: when,
			Members: []auth.RoleMember{{ID: "018b0c1e-cccc-7aaa-8bbb-000000000003", RoleID: r.ID, User: bob, JoinedAt: when, UpdatedAt: when}}}
	}
}

func TestWhoMayEditAFlag(t *testing.T) {
	t.Parallel()
	given := func(h *house) { h.do("POST", path(1)+"role_access/", `{"role_id":"`+growth+`"}`).want(201) }
	cases := []struct {
		name   string
		levels auth.Levels
		before func(h *house)
		can    bool
	}{
		{"everybody may edit", auth.Levels{Default: auth.CanEdit}, nil, true},
		{"everybody may view, no role", auth.Levels{Default: auth.CanView}, nil, false},
		{"admins may", auth.Levels{Default: auth.CanView, Admin: true}, nil, true},
		{"a role that may edit", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: support, Level: auth.CanView}, {ID: growth, Level: auth.CanEdit}}}, nil, true},
		{"a role that may view", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: growth, Level: auth.CanView}}}, nil, false},
		{"a role that may view and was given the flag", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: growth, Level: auth.CanView}}}, given, true},
		{"another role was given the flag", auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{{ID: support, Level: auth.CanView}}}, given, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := onOne(t)
			h.people.roles[growth] = auth.Role{ID: growth}
			h.create(`{"key":"a"}`)
			if c.before != nil {
				c.before(h)
			}
			h.people.levels[2] = c.levels
			bobs := h.as("phx_bob")
			if f := bobs.do("GET", path(1), "").flag(200); f.CanEdit != c.can {
				t.Errorf("can_edit is %v", f.CanEdit)
			}
			calls := []answer{
				bobs.patch(1, `{"name":"x"}`), bobs.do("PUT", path(1), `{"key":"a"}`), bobs.do("POST", path(1)+"rollback/", `{"version":1}`),
				bobs.do("POST", path(1)+"dashboard/", ``),
			}
			for i, a := range calls {
				if c.can {
					a.want(200)
				} else if a.fails(403, "permission_denied", ""); i == 0 && string(a.body) != `{"type":"authentication_error","code":"permission_denied","detail":"You don't have edit permissions for this feature flag.","attr":null}` {
					t.Errorf("refusal: %s", a.body)
				}
			}
			own := bobs.create(`{"key":"bobs"}`)
			if !own.CanEdit {
				t.Error("who made a flag may edit it")
			}
			bobs.patch(own.ID, `{"name":"x"}`).want(200)
		})
	}
}

func TestRoleAccess(t *testing.T) {
	onBoth(t, func(t *testing.T, h *house) {
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
			t.Errorf("given: %+v", a)
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
		delete(h.people.roles, growth)
		h.do("GET", access, "").want(200).into(&list)
		if list.Count != 0 {
			t.Errorf("a role that is gone is listed: %+v", list)
		}
	})
}
