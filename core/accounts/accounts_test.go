package accounts_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/api"
	"github.com/guidonhq/guidon/api/apitest"
	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// world is an organization with an owner, an admin and a member, two projects,
// and another organization, served for real. Keys are by the name of caller holds
// them.
type world struct {
	auth  *auth.Service
	first *auth.Credentials
	url   string
	keys  map[string]string
	users map[string]auth.User
	other auth.Organization
}

// given is the flags of roles, as core/flags returns them.
type given map[string][]auth.RoleFlag

func (g given) FlagsOfRoles(_ context.Context, projectIDs []int64, roleIDs []string) (map[string][]auth.RoleFlag, error) {
	out := map[string][]auth.RoleFlag{}
	for _, id := range roleIDs {
		for _, f := range g["any"] {
			if len(projectIDs) > int(f.ID) { // flag 0 is in the first project, 1 in the second
				out[id] = append(out[id], f)
			}
		}
	}
	return out, nil
}

// document is what every answer is held against.
var document = sync.OnceValue(func() *apitest.Document {
	d, err := apitest.New(api.OpenAPI)
	if err != nil {
		panic(err)
	}
	return d
})

// run calls fn on both dialects, each with a world of its own.
func run(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		fn(t, build(t, d))
	})
}

func build(t *testing.T, d *db.DB) *world {
	t.Helper()
	s, err := auth.New(auth.DefaultConfig(), d, nil, nil)
	must(t, err)
	w := &world{auth: s, keys: map[string]string{"keyless": ""}, users: map[string]auth.User{}}
	w.first, err = s.Bootstrap(t.Context())
	must(t, err)
	org := w.first.Organization.ID
	_, _, err = s.CreateProject(t.Context(), auth.NewProject{OrganizationID: org, Name: "Second"})
	must(t, err)
	w.other, err = s.CreateOrganization(t.Context(), "Other")
	must(t, err)
	_, _, err = s.CreateProject(t.Context(), auth.NewProject{OrganizationID: w.other.ID, Name: "Theirs"})
	must(t, err)
	w.users["owner"] = w.first.User
	w.join(t, "admin", org, auth.LevelAdmin)
	w.join(t, "member", org, auth.LevelMember)
	w.join(t, "stranger", w.other.ID, auth.LevelOwner)
	for name := range w.users {
		w.keys[name] = w.key(t, name, auth.NewPersonalKey{Scopes: []string{"*"}})
	}
	w.keys["kept"] = w.key(t, "owner", auth.NewPersonalKey{Scopes: []string{"*"}, ProjectIDs: []int64{1}})
	w.keys["narrow"] = w.key(t, "owner", auth.NewPersonalKey{Scopes: []string{"user:write"}})
	w.keys["scopeless"] = w.key(t, "owner", auth.NewPersonalKey{Scopes: []string{"action:read"}})
	w.keys["reader"] = w.key(t, "owner", auth.NewPersonalKey{Scopes: []string{"user:read", "project:read", "organization:read", "role:read"}})
	w.url = webtest.Serve(t, s, accounts.NewHTTP(s, given{"any": {{ID: 0, Key: "new-nav"}, {ID: 1, Key: "<b>"}}}, activity.NewAudit(d)))
	return w
}

func (w *world) join(t *testing.T, name, org string, level int) {
	t.Helper()
	u, err := w.auth.CreateUser(t.Context(), auth.NewUser{Email: name + "@example.com", FirstName: name, OrganizationID: org, Level: level})
	must(t, err)
	w.users[name] = u
}

func (w *world) key(t *testing.T, user string, in auth.NewPersonalKey) string {
	t.Helper()
	in.UserID, in.Label = w.users[user].ID, user
	_, secret, err := w.auth.CreatePersonalKey(t.Context(), in)
	must(t, err)
	return secret
}

// path puts the names of this world into p.
func (w *world) path(p string) string {
	return strings.NewReplacer(
		"{org}", w.first.Organization.ID, "{other}", w.other.ID, "{admin}", w.users["admin"].UUID,
		"{member}", w.users["member"].UUID, "{owner}", w.users["owner"].UUID, "{stranger}", w.users["stranger"].UUID,
		"{member id}", strconv.FormatInt(w.users["member"].ID, 10), "{stranger id}", strconv.FormatInt(w.users["stranger"].ID, 10),
	).Replace(p)
}

type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// ask sends one request with the key of caller.
func (w *world) ask(t *testing.T, caller, method, path, body string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+w.path(path), strings.NewReader(w.path(body)))
	must(t, err)
	if key := w.keys[caller]; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	out := reply{status: res.StatusCode, header: res.Header, text: string(text)}
	if err := document().Check(method, w.path(path), res.StatusCode, res.Header, text); err != nil {
		t.Error(err)
	}
	if len(text) > 0 {
		must(t, json.Unmarshal(text, &out.body))
	}
	return out
}

// want asks and fails the test on another status.
func (w *world) want(t *testing.T, status int, caller, method, path, body string) reply {
	t.Helper()
	got := w.ask(t, caller, method, path, body)
	if got.status != status {
		t.Fatalf("%s %s as %s: %d %s, want %d", method, path, caller, got.status, got.text, status)
	}
	return got
}

func (r reply) results() (out []map[string]any) {
	items, _ := r.body["results"].([]any)
	for _, i := range items {
		one, _ := i.(map[string]any)
		out = append(out, one)
	}
	return out
}

// names lists the keys of the object in the order of the text.
func names(t *testing.T, object string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	_, err := d.Token()
	must(t, err)
	var out []string
	for d.More() {
		name, err := d.Token()
		must(t, err)
		var value json.RawMessage
		must(t, d.Decode(&value))
		text, _ := name.(string)
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
