package auth_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

func TestProjectRules(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change     auth.ProjectChange
		attr, code string // empty: accepted
	}{
		"a zone of the database":         {change: auth.ProjectChange{Timezone: ptr("Europe/Berlin")}},
		"a zone that is none":            {auth.ProjectChange{Timezone: ptr("Europe/Atlantis")}, "timezone", "invalid_choice"},
		"the zone of this machine":       {auth.ProjectChange{Timezone: ptr("Local")}, "timezone", "invalid_choice"},
		"an empty zone":                  {auth.ProjectChange{Timezone: ptr("")}, "timezone", "invalid_choice"},
		"a path is not a zone":           {auth.ProjectChange{Timezone: ptr("../../etc/passwd")}, "timezone", "invalid_choice"},
		"a name":                         {change: auth.ProjectChange{Name: ptr(" Shop ")}},
		"a blank name":                   {auth.ProjectChange{Name: ptr(" ")}, "name", "blank"},
		"a long name":                    {auth.ProjectChange{Name: ptr(strings.Repeat("é", 201))}, "name", "max_length"},
		"a name with a zero byte":        {auth.ProjectChange{Name: ptr("a\x00b")}, "name", "invalid_input"},
		"a name that is no text":         {auth.ProjectChange{Name: ptr("\xff")}, "name", "invalid_input"},
		"settings":                       {change: auth.ProjectChange{Settings: ptr(`{"a": [1, 2]}`)}},
		"settings that are no object":    {auth.ProjectChange{Settings: ptr("[]")}, "settings", "invalid_input"},
		"settings that are null":         {auth.ProjectChange{Settings: ptr("null")}, "settings", "invalid_input"},
		"a question mark is not a place": {change: auth.ProjectChange{Name: ptr("What? 'quoted' \\ \"twice\"")}},
	}
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				p, err := s.UpdateProject(t.Context(), 1, c.change)
				if c.attr != "" {
					wantFault(t, err, fault.Invalid, c.code, c.attr)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if stored := must(s.Projects(t.Context(), ""))(t)[0]; stored != p {
					t.Fatalf("got %+v, stored %+v", p, stored)
				}
			})
		}
	})
}

func TestProjectsBelongToAnOrganization(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		other := must(s.CreateOrganization(ctx, "Other"))(t)
		theirs, key, err := s.CreateProject(ctx, auth.NewProject{OrganizationID: other.ID, Name: "Theirs", Timezone: "Asia/Tokyo", AnonymizeIPs: true})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := s.ProjectByKey(ctx, key.Key); err != nil || p != theirs || p.Location().String() != "Asia/Tokyo" {
			t.Fatalf("got %+v, %v", p, err)
		}
		who := must(s.PrincipalByKey(ctx, c.PersonalKey))(t)
		for _, id := range []string{"2", "3", "x", "-1", ""} {
			_, err := s.ProjectFor(ctx, who, id)
			wantFault(t, err, fault.NotFound, "not_found")
		}
		if n := len(must(s.Projects(ctx, other.ID))(t)); n != 1 {
			t.Errorf("%d projects", n)
		}
		if n := len(must(s.Projects(ctx, ""))(t)); n != 2 {
			t.Errorf("%d projects in all", n)
		}
		_, _, err = s.CreateProject(ctx, auth.NewProject{OrganizationID: "nobody", Name: "x"})
		wantFault(t, err, fault.Invalid, "does_not_exist", "organization_id")
		_, err = s.Project(ctx, 99)
		wantFault(t, err, fault.NotFound, "not_found")
		wantFault(t, s.RevokeProject(ctx, 99), fault.NotFound, "not_found")
	})
}

func TestProjectKeys(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		brought := auth.NewProjectKey{ProjectID: 1, Label: "from before", Key: "phc_a-key_of_another_service", CreatedBy: c.User.ID}
		k, err := s.CreateProjectKey(ctx, brought)
		if err != nil || k.Key != brought.Key {
			t.Fatalf("got %+v, %v", k, err)
		}
		if _, err := s.ProjectByKey(ctx, brought.Key); err != nil {
			t.Fatal(err)
		}
		_, err = s.CreateProjectKey(ctx, brought)
		wantFault(t, err, fault.Invalid, "unique", "key")
		for _, bad := range []string{"phx_looks_personal", "short", "has space inside", "naïve-key-of-ours", strings.Repeat("a", 65)} {
			_, err := s.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 1, Label: "x", Key: bad})
			wantFault(t, err, fault.Invalid, "invalid_input", "key")
		}
		_, err = s.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 9, Label: "x"})
		wantFault(t, err, fault.Invalid, "does_not_exist", "project_id")
		_, err = s.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 1})
		wantFault(t, err, fault.Invalid, "blank", "label")

		wantFault(t, s.RevokeProjectKey(ctx, 2, k.ID), fault.NotFound, "not_found")
		if err := s.RevokeProjectKey(ctx, 1, k.ID); err != nil {
			t.Fatal(err)
		}
		wantFault(t, s.RevokeProjectKey(ctx, 1, k.ID), fault.NotFound, "not_found")
		keys := must(s.ProjectKeys(ctx, 1))(t)
		if len(keys) != 2 || !keys[0].RevokedAt.IsZero() || keys[1].RevokedAt.IsZero() || keys[1].CreatedBy != c.User.ID {
			t.Fatalf("got %+v", keys)
		}
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx, org := t.Context(), c.Organization.ID
		ann := must(s.CreateUser(ctx, auth.NewUser{Email: " Ann@Example.com ", FirstName: "Ann", OrganizationID: org}))(t)
		if ann.Email != "ann@example.com" || ann.UUID == "" || ann.DistinctID == "" || ann.ID == 0 {
			t.Fatalf("got %+v", ann)
		}
		_, err := s.CreateUser(ctx, auth.NewUser{Email: "ANN@example.com", OrganizationID: org})
		wantFault(t, err, fault.Invalid, "unique", "email")
		for _, email := range []string{"", "ann", "Ann <ann@example.com>", "a@b@c"} {
			_, err := s.CreateUser(ctx, auth.NewUser{Email: email, OrganizationID: org})
			wantFault(t, err, fault.Invalid, "invalid_input", "email")
		}
		_, err = s.CreateUser(ctx, auth.NewUser{Email: "b@example.com", OrganizationID: org, Level: 9})
		wantFault(t, err, fault.Invalid, "invalid_choice", "level")
		_, err = s.CreateUser(ctx, auth.NewUser{Email: "b@example.com", OrganizationID: "none"})
		wantFault(t, err, fault.Invalid, "does_not_exist", "organization_id")

		text, err := json.Marshal(ann)
		if want := `"first_name":"Ann","email":"ann@example.com","is_email_verified":false,"last_name":"","role_at_organization":null,"hedgehog_config":null}`; err != nil || !strings.HasSuffix(string(text), want) {
			t.Errorf("got %s, %v", text, err)
		}
		ann, err = s.UpdateUser(ctx, ann.ID, auth.UserChange{FirstName: ptr("Anna"), CurrentProjectID: ptr(int64(1))})
		if err != nil || must(s.User(ctx, ann.ID))(t) != ann || ann.FirstName != "Anna" {
			t.Fatalf("got %+v, %v", ann, err)
		}
		_, err = s.UpdateUser(ctx, ann.ID, auth.UserChange{Email: ptr("admin@localhost")})
		wantFault(t, err, fault.Invalid, "unique", "email")
		_, err = s.UpdateUser(ctx, ann.ID, auth.UserChange{CurrentProjectID: ptr(int64(9))})
		wantFault(t, err, fault.Invalid, "does_not_exist", "current_project")

		if err := s.RevokeUser(ctx, ann.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.User(ctx, ann.ID)
		wantFault(t, err, fault.NotFound, "not_found")
		if n := len(must(s.Users(ctx))(t)); n != 1 {
			t.Errorf("%d users", n)
		}
		if byID := must(s.UsersByID(ctx, []int64{ann.ID, c.User.ID, 99}))(t); len(byID) != 2 || byID[ann.ID].FirstName != "Anna" {
			t.Errorf("who made what is forgotten: %+v", byID)
		}
		wantFault(t, s.RevokeUser(ctx, c.User.ID), fault.Conflict, "last_owner")
	})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx, org := t.Context(), c.Organization.ID
		ann := must(s.CreateUser(ctx, auth.NewUser{Email: "ann@example.com", OrganizationID: org}))(t)
		wantFault(t, s.AddMember(ctx, org, ann.ID, auth.LevelAdmin), fault.Invalid, "unique", "user")
		wantFault(t, s.AddMember(ctx, org, 99, auth.LevelAdmin), fault.Invalid, "does_not_exist", "user")
		wantFault(t, s.AddMember(ctx, "none", ann.ID, auth.LevelAdmin), fault.Invalid, "does_not_exist", "organization_id")

		wantFault(t, s.SetMemberLevel(ctx, org, c.User.ID, auth.LevelMember), fault.Conflict, "last_owner")
		wantFault(t, s.RemoveMember(ctx, org, c.User.ID), fault.Conflict, "last_owner")
		if err := s.SetMemberLevel(ctx, org, ann.ID, auth.LevelOwner); err != nil {
			t.Fatal(err)
		}
		if err := s.SetMemberLevel(ctx, org, c.User.ID, auth.LevelMember); err != nil {
			t.Fatalf("with another owner: %v", err)
		}
		who := must(s.PrincipalByKey(ctx, c.PersonalKey))(t)
		if who.IsAdmin() || who.OrgLevel != auth.LevelMember {
			t.Errorf("got %+v", who)
		}
		members := must(s.Members(ctx, org))(t)
		if len(members) != 2 || members[0].Level != auth.LevelMember || members[1].User != ann || members[1].JoinedAt.IsZero() {
			t.Errorf("got %+v", members)
		}
		if err := s.RemoveMember(ctx, org, c.User.ID); err != nil {
			t.Fatal(err)
		}
		_, err := s.PrincipalByKey(ctx, c.PersonalKey)
		wantFault(t, err, fault.Unauthenticated, "authentication_failed")
		wantFault(t, s.RemoveMember(ctx, org, c.User.ID), fault.NotFound, "not_found")
		if err := s.AddMember(ctx, org, c.User.ID, auth.LevelMember); err != nil {
			t.Fatal(err)
		}
		_, err = s.PrincipalByKey(ctx, c.PersonalKey)
		wantFault(t, err, fault.Unauthenticated, "authentication_failed") // who comes back gets new keys
	})
}

func TestPersonalKeys(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx, me := t.Context(), c.User.ID
		k, secret, err := s.CreatePersonalKey(ctx, auth.NewPersonalKey{
			UserID: me, Label: "deploy", Scopes: []string{"feature_flag:write", "action:read", "feature_flag:write"}, ProjectIDs: []int64{1, 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if k.Mask != "phx_..."+secret[len(secret)-4:] || len(k.Scopes) != 2 || len(k.ProjectIDs) != 1 || k.OrganizationID != c.Organization.ID {
			t.Errorf("got %+v", k)
		}
		var stored string
		err = d.Read(ctx).NewRaw("SELECT hash FROM personal_keys WHERE id = ?", k.ID).Scan(ctx, &stored)
		if err != nil || len(stored) != 64 || strings.Contains(stored, secret[4:]) {
			t.Errorf("stored as %q, %v", stored, err)
		}
		who := must(s.PrincipalByKey(ctx, " "+secret+"\n"))(t)
		if !who.HasScope("feature_flag:read") || who.HasScope("action:write") || who.KeyID != k.ID {
			t.Errorf("got %+v", who)
		}
		if err := s.Stop(ctx); err != nil { // never started: only writes down what was used
			t.Fatal(err)
		}

		other, _, err := s.CreateProject(ctx, auth.NewProject{OrganizationID: c.Organization.ID, Name: "Other"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ProjectFor(ctx, who, "2")
		wantFault(t, err, fault.Forbidden, "permission_denied")
		if _, err := s.UpdateUser(ctx, me, auth.UserChange{CurrentProjectID: &other.ID}); err != nil {
			t.Fatal(err)
		}
		who = must(s.PrincipalByKey(ctx, secret))(t)
		if p := must(s.ProjectFor(ctx, who, auth.Current))(t); p.ID != 1 {
			t.Errorf("the current project is %d, which the key may not touch", p.ID)
		}

		if err := s.RevokePersonalKey(ctx, me, k.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.PrincipalByKey(ctx, secret)
		wantFault(t, err, fault.Unauthenticated, "authentication_failed")
		wantFault(t, s.RevokePersonalKey(ctx, me, k.ID), fault.NotFound, "not_found")
		for _, key := range []string{"", "phx_nobody", strings.Repeat("x", 300), c.ProjectKey} {
			_, err = s.PrincipalByKey(ctx, key)
			wantFault(t, err, fault.Unauthenticated, "authentication_failed")
		}
	})
}

func TestPersonalKeyRules(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		other := must(s.CreateOrganization(ctx, "Other"))(t)
		theirs, _, err := s.CreateProject(ctx, auth.NewProject{OrganizationID: other.ID, Name: "Theirs"})
		if err != nil {
			t.Fatal(err)
		}
		good := auth.NewPersonalKey{UserID: c.User.ID, Label: "x", Scopes: []string{"*"}}
		cases := map[string]struct {
			change     func(*auth.NewPersonalKey)
			attr, code string
		}{
			"no label":                     {func(k *auth.NewPersonalKey) { k.Label = "" }, "label", "blank"},
			"no scope":                     {func(k *auth.NewPersonalKey) { k.Scopes = nil }, "scopes", "required"},
			"a scope of nothing":           {func(k *auth.NewPersonalKey) { k.Scopes = []string{"flag:read"} }, "scopes", "invalid_input"},
			"a scope without action":       {func(k *auth.NewPersonalKey) { k.Scopes = []string{"feature_flag"} }, "scopes", "invalid_input"},
			"an action that is none":       {func(k *auth.NewPersonalKey) { k.Scopes = []string{"action:run"} }, "scopes", "invalid_input"},
			"no such user":                 {func(k *auth.NewPersonalKey) { k.UserID = 99 }, "user", "does_not_exist"},
			"an organization of others":    {func(k *auth.NewPersonalKey) { k.OrganizationID = other.ID }, "organization_id", "does_not_exist"},
			"a project of others":          {func(k *auth.NewPersonalKey) { k.ProjectIDs = []int64{1, theirs.ID} }, "project_ids", "does_not_exist"},
			"a project that is not":        {func(k *auth.NewPersonalKey) { k.ProjectIDs = []int64{99} }, "project_ids", "does_not_exist"},
			"every object has its actions": {func(k *auth.NewPersonalKey) { k.Scopes = allScopes() }, "", ""},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				in := good
				c.change(&in)
				_, _, err := s.CreatePersonalKey(ctx, in)
				if c.attr == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				wantFault(t, err, fault.Invalid, c.code, c.attr)
			})
		}
	})
}

func allScopes() (out []string) {
	for _, object := range apikey.ScopeObjects() {
		out = append(out, object+":read", object+":write", object+":*")
	}
	return out
}

func TestStopSavesKeyUsage(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		started := start(t, d)
		_, err := started.PrincipalByKey(ctx, c.PersonalKey)
		if err := errors.Join(err, started.Stop(ctx)); err != nil {
			t.Fatal(err)
		}
		if k := must(s.PersonalKeys(ctx, c.User.ID))(t)[0]; k.LastUsedAt.Before(k.CreatedAt) {
			t.Fatalf("made at %v, last used at %v", k.CreatedAt, k.LastUsedAt)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := auth.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	cfg := auth.DefaultConfig()
	cfg.RefreshInterval = 0
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "auth.refresh_interval") {
		t.Errorf("got %v", err)
	}
	if _, err := auth.New(cfg, nil, nil, nil); err == nil {
		t.Error("a service without refresh")
	}
}

func TestKeyManagesOnlyCoveredKeys(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		held     []string
		kept     []int64
		scopes   []string
		projects []int64
		covered  bool
	}{
		"everything covers everything":            {held: []string{"*"}, scopes: []string{"*"}, covered: true},
		"everything covers a scope":               {held: []string{"*"}, scopes: []string{"user:write"}, projects: []int64{1}, covered: true},
		"writing covers reading":                  {held: []string{"user:write"}, scopes: []string{"user:read"}, covered: true},
		"writing is all there is":                 {held: []string{"user:write"}, scopes: []string{"user:*"}, covered: true},
		"reading does not cover writing":          {held: []string{"user:read"}, scopes: []string{"user:write"}},
		"a scope does not cover everything":       {held: []string{"user:*"}, scopes: []string{"*"}},
		"another object":                          {held: []string{"user:*"}, scopes: []string{"role:read"}},
		"one scope too many":                      {held: []string{"user:*"}, scopes: []string{"user:read", "role:read"}},
		"a kept key does not cover a free one":    {held: []string{"*"}, kept: []int64{1}, scopes: []string{"user:read"}},
		"a kept key covers one that is kept more": {held: []string{"*"}, kept: []int64{1, 2}, scopes: []string{"*"}, projects: []int64{2}, covered: true},
		"a kept key and another project":          {held: []string{"*"}, kept: []int64{1}, scopes: []string{"*"}, projects: []int64{1, 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &auth.Principal{Scopes: c.held, ProjectIDs: c.kept}
			if got := p.Covers(c.scopes, c.projects); got != c.covered {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestUpdatePersonalKey(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx, me := t.Context(), c.User.ID
		k, secret, err := s.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: me, Label: "ci", Scopes: []string{"user:write"}})
		if err != nil {
			t.Fatal(err)
		}
		weak := must(s.PrincipalByKey(ctx, secret))(t)
		_, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{Label: ptr("deploys"), Scopes: []string{"user:write", "flag:read"}})
		wantFault(t, err, fault.Invalid, "invalid_input", "scopes")
		changed, err := s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{Label: ptr("deploys"), By: weak})
		if err != nil || changed.Label != "deploys" || must(s.PersonalKey(ctx, me, k.ID))(t).Label != "deploys" {
			t.Fatalf("got %+v, %v", changed, err)
		}
		_, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{Scopes: []string{"*"}, By: weak})
		wantFault(t, err, fault.Forbidden, "permission_denied")
		_, err = s.UpdatePersonalKey(ctx, me, 1, auth.PersonalKeyChange{Label: ptr("mine now"), By: weak})
		wantFault(t, err, fault.Forbidden, "permission_denied")
		_, _, err = s.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: me, Label: "more", Scopes: []string{"*"}, By: weak})
		wantFault(t, err, fault.Forbidden, "permission_denied")

		if _, err := s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{Scopes: []string{"role:read"}}); err != nil {
			t.Fatal(err)
		}
		if who := must(s.PrincipalByKey(ctx, secret))(t); who.HasScope("user:read") || !who.HasScope("role:read") {
			t.Errorf("the change is not known: %+v", who)
		}
		if _, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{ProjectIDs: []int64{1, 1}}); err != nil {
			t.Fatal(err)
		}
		if who := must(s.PrincipalByKey(ctx, secret))(t); who.CanAccessProject(2) || len(who.ProjectIDs) != 1 {
			t.Errorf("the key is not kept to project 1: %+v", who)
		}
		_, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{ProjectIDs: []int64{}, By: must(s.PrincipalByKey(ctx, secret))(t)})
		wantFault(t, err, fault.Forbidden, "permission_denied")
		_, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{ProjectIDs: []int64{9}})
		wantFault(t, err, fault.Invalid, "does_not_exist", "project_ids")
		_, err = s.UpdatePersonalKey(ctx, me+1, k.ID, auth.PersonalKeyChange{Label: ptr("x")})
		wantFault(t, err, fault.NotFound, "not_found")
		if err := s.RevokePersonalKey(ctx, me, k.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.UpdatePersonalKey(ctx, me, k.ID, auth.PersonalKeyChange{Label: ptr("x")})
		wantFault(t, err, fault.NotFound, "not_found")
	})
}

func TestTokensReturnsOldestValidKey(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		second, err := s.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 1, Label: "second"})
		if err != nil {
			t.Fatal(err)
		}
		if got := must(s.Tokens(ctx, []int64{1, 9}))(t); len(got) != 1 || got[1] != c.ProjectKey {
			t.Errorf("got %v", got)
		}
		if err := s.RevokeProjectKey(ctx, 1, must(s.ProjectKeys(ctx, 1))(t)[0].ID); err != nil {
			t.Fatal(err)
		}
		if got := must(s.Tokens(ctx, []int64{1}))(t); got[1] != second.Key {
			t.Errorf("got %v", got)
		}
		if got := must(s.Tokens(ctx, nil))(t); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}
