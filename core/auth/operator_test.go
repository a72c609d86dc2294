package auth_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

func TestOperatorRight(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		if who := must(s.PrincipalByKey(ctx, c.PersonalKey))(t); !who.IsOperator() {
			t.Error("the first user is not an operator")
		}
		ann := must(s.CreateUser(ctx, auth.NewUser{Email: "ann@example.com", OrganizationID: c.Organization.ID, Level: auth.LevelOwner}))(t)
		_, key, err := s.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: ann.ID, Label: "ann", Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, operator := range []bool{false, true, false} {
			if err := s.SetOperator(ctx, ann.ID, operator); err != nil {
				t.Fatal(err)
			}
			if who := must(s.PrincipalByKey(ctx, key))(t); who.IsOperator() != operator {
				t.Errorf("IsOperator is %v after SetOperator(%v)", who.IsOperator(), operator)
			}
		}
		wantFault(t, s.SetOperator(ctx, 999, true), fault.NotFound, "not_found")
		// Other changes of a user keep the right.
		if _, err := s.UpdateUser(ctx, c.User.ID, auth.UserChange{FirstName: ptr("Ada")}); err != nil {
			t.Fatal(err)
		}
		if who := must(s.PrincipalByKey(ctx, c.PersonalKey))(t); !who.IsOperator() || who.User.FirstName != "Ada" {
			t.Errorf("after a change: %+v", who.User)
		}
	})
}

func TestMigrationMakesOwnersOfTheFirstOrganizationOperators(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		other := must(s.CreateOrganization(ctx, "Other"))(t)
		add := func(email, organization string, level int) auth.User {
			return must(s.CreateUser(ctx, auth.NewUser{Email: email, OrganizationID: organization, Level: level}))(t)
		}
		second := add("second@example.com", c.Organization.ID, auth.LevelOwner)
		add("admin@example.com", c.Organization.ID, auth.LevelAdmin)
		add("stranger@example.com", other.ID, auth.LevelOwner)
		const step = 62
		newer := 0
		for _, st := range must(d.Steps(ctx))(t) {
			if st.Number >= step {
				newer++
			}
		}
		if err := d.Revert(ctx, newer); err != nil {
			t.Fatal(err)
		}
		if err := d.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		for _, u := range must(s.Users(ctx))(t) {
			if want := u.ID == c.User.ID || u.ID == second.ID; u.Operator != want {
				t.Errorf("operator right of %s is %v", u.Email, u.Operator)
			}
		}
	})
}
