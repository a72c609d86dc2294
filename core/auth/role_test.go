package auth_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

func TestCanEdit(t *testing.T) {
	t.Parallel()
	role := func(id string, level int) auth.RoleLevel { return auth.RoleLevel{ID: id, Level: level} }
	cases := map[string]struct {
		levels  auth.Levels
		creator bool
		access  []string
		edit    bool
		give    bool
	}{
		"every member may by default":           {levels: auth.Levels{Default: auth.CanEdit}, edit: true, give: true},
		"a viewer may not":                      {levels: auth.Levels{Default: auth.CanView}},
		"the creator may":                       {levels: auth.Levels{Default: auth.CanView}, creator: true, edit: true, give: true},
		"who manages the organization may":      {levels: auth.Levels{Default: auth.CanView, Admin: true}, edit: true, give: true},
		"one editing role among viewing ones":   {levels: auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{role("a", 21), role("b", 37)}}, edit: true, give: true},
		"a viewing role that was given access":  {levels: auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{role("a", 21)}}, access: []string{"z", "a"}, edit: true},
		"a viewing role without access":         {levels: auth.Levels{Default: auth.CanView, Roles: []auth.RoleLevel{role("a", 21)}}, access: []string{"z"}},
		"a viewing role under an open default":  {levels: auth.Levels{Default: auth.CanEdit, Roles: []auth.RoleLevel{role("a", 21)}}, edit: true, give: true},
		"access of a role the user is not of":   {levels: auth.Levels{Default: auth.CanView}, access: []string{"a"}},
		"no level at all is not a right (zero)": {levels: auth.Levels{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.levels.CanEdit(c.creator, c.access); got != c.edit {
				t.Errorf("CanEdit is %v", got)
			}
			if got := c.levels.CanGiveAccess(c.creator); got != c.give {
				t.Errorf("CanGiveAccess is %v", got)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx, org := t.Context(), c.Organization.ID
		if _, err := s.UpdateOrganization(ctx, org, auth.OrganizationChange{Name: ptr("Ours"), FlagsAccessLevel: ptr(auth.CanView)}); err != nil {
			t.Fatal(err)
		}
		growth := must(s.CreateRole(ctx, auth.NewRole{OrganizationID: org, Name: "Growth", CreatedBy: c.User.ID}))(t)
		if growth.FlagsAccessLevel != auth.CanView || growth.CreatedBy.ID != c.User.ID {
			t.Errorf("a role begins with the organization's level: %+v", growth)
		}
		core := must(s.CreateRole(ctx, auth.NewRole{OrganizationID: org, Name: "Core", FlagsAccessLevel: auth.CanEdit}))(t)
		_, err := s.CreateRole(ctx, auth.NewRole{OrganizationID: org, Name: "Core"})
		wantFault(t, err, fault.Invalid, "unique", "name")
		_, err = s.UpdateRole(ctx, org, growth.ID, auth.RoleChange{Name: ptr("Core")})
		wantFault(t, err, fault.Invalid, "unique", "name")
		_, err = s.CreateRole(ctx, auth.NewRole{OrganizationID: org, Name: "x", FlagsAccessLevel: 22})
		wantFault(t, err, fault.Invalid, "invalid_choice", "feature_flags_access_level")

		ann := must(s.CreateUser(ctx, auth.NewUser{Email: "ann@example.com", OrganizationID: org}))(t)
		m := must(s.AddRoleMember(ctx, org, growth.ID, ann.ID))(t)
		_, err = s.AddRoleMember(ctx, org, growth.ID, ann.ID)
		wantFault(t, err, fault.Invalid, "unique", "user_uuid")
		_, err = s.AddRoleMember(ctx, org, growth.ID, 99)
		wantFault(t, err, fault.Invalid, "does_not_exist", "user_uuid")
		for _, id := range []string{"", "none", "\x00", "\xff"} { // databases refuse the last two
			_, err = s.Role(ctx, org, id)
			wantFault(t, err, fault.NotFound, "not_found", "")
		}
		_, err = s.AddRoleMember(ctx, org, "none", ann.ID)
		wantFault(t, err, fault.NotFound, "not_found")

		roles := must(s.Roles(ctx, org))(t)
		if len(roles) != 2 || len(roles[0].Members) != 1 || roles[0].Members[0] != m || roles[1].Members == nil || *roles[0].CreatedBy != c.User {
			t.Errorf("got %+v", roles)
		}
		byID := must(s.RolesByID(ctx, org, []string{core.ID, "none"}))(t)
		if len(byID) != 1 || byID[core.ID].Name != "Core" {
			t.Errorf("got %+v", byID)
		}

		who := &auth.Principal{User: ann, OrganizationID: org, OrgLevel: auth.LevelMember}
		levels := must(s.Levels(ctx, who))(t)
		if levels.Default != auth.CanView || levels.Admin || len(levels.Roles) != 1 || levels.Roles[0] != (auth.RoleLevel{ID: growth.ID, Level: auth.CanView}) {
			t.Errorf("got %+v", levels)
		}
		if _, err := s.UpdateRole(ctx, org, growth.ID, auth.RoleChange{FlagsAccessLevel: ptr(auth.CanEdit)}); err != nil {
			t.Fatal(err)
		}
		if levels := must(s.Levels(ctx, who))(t); !levels.CanEdit(false, nil) {
			t.Errorf("got %+v", levels)
		}
		if err := s.RemoveRoleMember(ctx, org, growth.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		wantFault(t, s.RemoveRoleMember(ctx, org, growth.ID, m.ID), fault.NotFound, "not_found")
		if err := s.DeleteRole(ctx, org, growth.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.Role(ctx, org, growth.ID)
		wantFault(t, err, fault.NotFound, "not_found")
		wantFault(t, s.DeleteRole(ctx, "another organization", core.ID), fault.NotFound, "not_found")
	})
}
