package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/auth"
)

// tenants is a server with two organizations. The first one has users of each
// level, a role whose members may only view flags, and two projects.
type tenants struct {
	*server
	auth    *auth.Service
	first   auth.Organization
	other   auth.Organization
	second  auth.Project // of the first organization
	foreign auth.Project // of the other one
	keys    map[string]string
	users   map[string]auth.User
}

func newTenants(t *testing.T, change ...func(*app.Config)) *tenants {
	t.Helper()
	s := serve(t, change...)
	a, err := auth.New(auth.DefaultConfig(), s.DB, nil, nil)
	check(t, err)
	w := &tenants{server: s, auth: a, first: s.First.Organization, keys: map[string]string{}, users: map[string]auth.User{"operator": s.First.User}}
	w.keys["operator"] = s.PersonalKey
	w.other, err = a.CreateOrganization(t.Context(), "Other")
	check(t, err)
	w.second, _, err = a.CreateProject(t.Context(), auth.NewProject{OrganizationID: w.first.ID, Name: "Second"})
	check(t, err)
	w.foreign, _, err = a.CreateProject(t.Context(), auth.NewProject{OrganizationID: w.other.ID, Name: "Theirs"})
	check(t, err)
	w.join(t, "owner", w.first.ID, auth.LevelOwner)
	w.join(t, "admin", w.first.ID, auth.LevelAdmin)
	w.join(t, "member", w.first.ID, auth.LevelMember)
	w.join(t, "viewer", w.first.ID, auth.LevelMember)
	w.join(t, "stranger", w.other.ID, auth.LevelOwner)
	role, err := a.CreateRole(t.Context(), auth.NewRole{OrganizationID: w.first.ID, Name: "Viewers", FlagsAccessLevel: auth.CanView})
	check(t, err)
	_, err = a.AddRoleMember(t.Context(), w.first.ID, role.ID, w.users["viewer"].ID)
	check(t, err)
	// Without a role, members may only view flags.
	level := auth.CanView
	_, err = a.UpdateOrganization(t.Context(), w.first.ID, auth.OrganizationChange{FlagsAccessLevel: &level})
	check(t, err)
	editors, err := a.CreateRole(t.Context(), auth.NewRole{OrganizationID: w.first.ID, Name: "Editors", FlagsAccessLevel: auth.CanEdit})
	check(t, err)
	_, err = a.AddRoleMember(t.Context(), w.first.ID, editors.ID, w.users["member"].ID)
	check(t, err)
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// join adds a user with a key for everything.
func (w *tenants) join(t *testing.T, name, organization string, level int) {
	t.Helper()
	u, err := w.auth.CreateUser(t.Context(), auth.NewUser{Email: name + "@example.com", FirstName: name, OrganizationID: organization, Level: level})
	check(t, err)
	w.users[name] = u
	w.keys[name] = w.key(t, name, auth.NewPersonalKey{Scopes: []string{"*"}})
}

// key returns a new key of a user.
func (w *tenants) key(t *testing.T, user string, in auth.NewPersonalKey) string {
	t.Helper()
	in.UserID, in.Label = w.users[user].ID, user
	_, secret, err := w.auth.CreatePersonalKey(t.Context(), in)
	check(t, err)
	return secret
}

// as sends a management request with a key and returns status and body.
func (w *tenants) as(t *testing.T, key, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url(path), strings.NewReader(body))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	check(t, err)
	return res.StatusCode, string(answer)
}
