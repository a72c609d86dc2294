package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/sessions"
)

// Kinds of credentials.
const (
	invalid  = iota // of no holder
	project         // a project key
	personal        // a personal key
	secret          // a secret key of a project
)

// Projects that a personal key is restricted to.
const (
	unrestricted = iota
	restrictedHere
	restrictedElsewhere
)

// credential is what a request authenticates with, and the rights of its holder.
type credential struct {
	name, key        string
	kind             int
	foreign          bool // the key is for another organization
	level            int
	editor, operator bool
	project          int
	lacks            bool  // a scope of the route
	session          int64 // the user of the session that it is, in place of a key
}

// holds reports whether the key has the scopes of the route.
func (c *credential) holds(a access) bool { return !c.lacks || len(a.scopes()) == 0 }

// absent is the number of objects that do not exist, and is part of other names of
// such objects.
const absent = "99999999"

// accessWorld is a server with credentials of all kinds and an object of each.
type accessWorld struct {
	*tenants
	client      *http.Client
	credentials []*credential
	scoped      map[string]string // keys of the owner by scopes
	objects     map[string]string // path segments of objects by kind and parameter
	access      string            // a role without access to the flag
	sessions    *sessions.Service
}

func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	w := &accessWorld{tenants: newTenants(t), client: &http.Client{Timeout: time.Minute}, scoped: map[string]string{}}
	t.Cleanup(w.client.CloseIdleConnections)
	w.sessions = sessions.New(sessions.DefaultConfig(), time.Second, w.DB, w.auth, zap.NewNop())
	w.addObjects(t)
	w.addHolders(t)
	w.addSecretKeys(t)
	w.addInvalid(t)
	return w
}

// addHolders adds keys that are valid.
func (w *accessWorld) addHolders(t *testing.T) {
	t.Helper()
	every := []string{"*"}
	w.join(t, "helper", w.first.ID, auth.LevelMember)
	check(t, w.auth.SetOperator(t.Context(), w.users["helper"].ID, true))
	w.join(t, "helper-abroad", w.other.ID, auth.LevelMember)
	check(t, w.auth.SetOperator(t.Context(), w.users["helper-abroad"].ID, true))
	w.join(t, "both", w.other.ID, auth.LevelOwner)
	check(t, w.auth.AddMember(t.Context(), w.first.ID, w.users["both"].ID, auth.LevelOwner))
	elsewhere := w.key(t, "both", auth.NewPersonalKey{Scopes: every, OrganizationID: w.other.ID})
	w.credentials = append(w.credentials,
		&credential{name: "project key", key: w.ProjectKey, kind: project},
		&credential{name: "owner of another organization", key: w.keys["stranger"], kind: personal, foreign: true, level: auth.LevelOwner, editor: true},
		&credential{name: "operator of another organization", key: w.keys["helper-abroad"], kind: personal, foreign: true, level: auth.LevelMember, operator: true},
		&credential{name: "key for another organization of the user", key: elsewhere, kind: personal, foreign: true, level: auth.LevelOwner, editor: true},
		&credential{name: "member who may view flags", key: w.keys["viewer"], kind: personal, level: auth.LevelMember},
		&credential{name: "member who may edit flags", key: w.keys["member"], kind: personal, level: auth.LevelMember, editor: true},
		&credential{name: "admin", key: w.keys["admin"], kind: personal, level: auth.LevelAdmin, editor: true},
		&credential{name: "owner", key: w.keys["owner"], kind: personal, level: auth.LevelOwner, editor: true},
		&credential{name: "operator who is a member", key: w.keys["helper"], kind: personal, level: auth.LevelMember, operator: true},
		&credential{name: "operator who is an owner", key: w.keys["operator"], kind: personal, level: auth.LevelOwner, editor: true, operator: true},
	)
	for _, c := range slices.Clone(w.credentials) {
		for name, user := range map[string]string{"member who may view flags": "viewer", "admin": "admin", "owner": "owner", "operator who is an owner": "operator", "owner of another organization": "stranger"} {
			if s := *c; c.name == name {
				s.name, s.key, s.session = "session of the "+name, "", w.users[user].ID
				w.credentials = append(w.credentials, &s)
			}
		}
	}
	for name, ids := range map[string][]int64{"key for the project": {w.First.Project.ID}, "key for another project": {w.second.ID}} {
		restricted := restrictedHere
		if ids[0] == w.second.ID {
			restricted = restrictedElsewhere
		}
		key := w.key(t, "operator", auth.NewPersonalKey{Scopes: every, ProjectIDs: ids})
		w.credentials = append(w.credentials, &credential{name: name, key: key, kind: personal, level: auth.LevelOwner, editor: true, operator: true, project: restricted})
	}
}

// addSecretKeys adds secret keys of the projects.
func (w *accessWorld) addSecretKeys(t *testing.T) {
	t.Helper()
	make := func(project int64, scope string) string {
		_, key, err := w.auth.SecretKeys.Create(t.Context(), secretkey.NewKey{ProjectID: project, Label: "x", Scopes: []string{scope}}, nil)
		check(t, err)
		return key
	}
	abroad, _, err := w.auth.CreateProject(t.Context(), auth.NewProject{OrganizationID: w.other.ID, Name: "Abroad"})
	check(t, err)
	const read = "feature_flag:read"
	w.credentials = append(w.credentials,
		&credential{name: "secret key", key: make(w.First.Project.ID, read), kind: secret, project: restrictedHere},
		&credential{name: "secret key without the scope", key: make(w.First.Project.ID, "endpoint:read"), kind: secret, project: restrictedHere, lacks: true},
		&credential{name: "secret key of another project", key: make(w.second.ID, read), kind: secret, project: restrictedElsewhere},
		&credential{name: "secret key of another organization", key: make(abroad.ID, read), kind: secret, foreign: true},
	)
}

// addInvalid adds keys that are not or no longer valid.
func (w *accessWorld) addInvalid(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []string{"leaver", "revoked"} {
		w.join(t, name, w.first.ID, auth.LevelOwner)
	}
	in := auth.NewPersonalKey{UserID: w.First.User.ID, OrganizationID: w.first.ID, Label: "x", Scopes: []string{"*"}}
	k, revoked, err := w.auth.CreatePersonalKey(ctx, in)
	check(t, err)
	check(t, w.auth.RevokePersonalKey(ctx, in.UserID, k.ID))
	var expired string
	for life := 200 * time.Millisecond; expired == ""; life *= 2 { // on a slow machine the end may come before the key
		in.ExpiresAt = time.Now().Add(life)
		if _, expired, err = w.auth.CreatePersonalKey(ctx, in); time.Now().Before(in.ExpiresAt) {
			check(t, err)
		}
	}
	old, err := w.auth.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: w.First.Project.ID, Label: "old"})
	check(t, err)
	check(t, w.auth.RevokeProjectKey(ctx, w.First.Project.ID, old.ID))
	closed, closedKey, err := w.auth.CreateProject(ctx, auth.NewProject{OrganizationID: w.first.ID, Name: "Closed"})
	check(t, err)
	check(t, w.auth.RevokeProject(ctx, closed.ID))
	check(t, w.auth.RemoveMember(ctx, w.first.ID, w.users["leaver"].ID))
	check(t, w.auth.RevokeUser(ctx, w.users["revoked"].ID))
	for name, key := range map[string]string{
		"none": "", "wrong project key": apikey.New(apikey.ProjectPrefix), "wrong personal key": apikey.New(apikey.PersonalPrefix), "wrong secret key": apikey.New(apikey.SecretPrefix),
		"revoked personal key": revoked, "expired personal key": expired, "revoked project key": old.Key, "key of a closed project": closedKey.Key,
		"key of a former member": w.keys["leaver"], "key of a revoked user": w.keys["revoked"],
	} {
		w.credentials = append(w.credentials, &credential{name: name, key: key})
		waitFor(t, "the end of "+name, func() bool {
			status, _ := w.as(t, key, "GET", "/api/personal_api_keys/@current", "")
			return status == 401
		})
	}
}

// credentialsFor returns all credentials with those whose scopes depend on the
// route. Keys with too few scopes belong to the first operator, who may do
// everything else.
func (w *accessWorld) credentialsFor(t *testing.T, a access) []*credential {
	t.Helper()
	out := slices.Clone(w.credentials)
	add := func(name string, lacks bool, scopes ...string) {
		out = append(out, &credential{name: name, key: w.withScopes(t, scopes), kind: personal, level: auth.LevelOwner, editor: true, operator: true, lacks: lacks})
	}
	needed := a.scopes()
	if len(needed) == 0 {
		needed = []string{"user:read"}
	}
	add("key with the needed scopes only", false, needed...)
	for i, scope := range needed {
		object, action, _ := strings.Cut(scope, ":")
		name := "key with every scope but the needed one"
		if i > 0 {
			name = "key without " + scope
		}
		var others []string
		for _, o := range apikey.ScopeObjects() {
			if o != object && !apikey.Covers(o+":write", scope) {
				others = append(others, o+":write")
			}
		}
		add(name, true, others...)
		if action == "write" {
			add("key that may read only", true, append(others, object+":read")...)
		}
	}
	return out
}

func (w *accessWorld) withScopes(t *testing.T, scopes []string) string {
	t.Helper()
	name := strings.Join(scopes, " ")
	if w.scoped[name] == "" {
		w.scoped[name] = w.key(t, "operator", auth.NewPersonalKey{Scopes: scopes})
	}
	return w.scoped[name]
}

// addObjects creates an object of each kind that paths name.
func (w *accessWorld) addObjects(t *testing.T) {
	t.Helper()
	const base = "/api/projects/1"
	number := strconv.FormatInt
	role, membership := w.newRole(t)
	w.access = w.emptyRole(t)
	flag := w.create(t, base+"/feature_flags", `{"key":"f"}`)
	w.objects = map[string]string{
		"projects/:project_id": number(w.First.Project.ID, 10), "organizations/:organization_id": w.first.ID,
		"feature_flags/:id": flag, "feature_flags/:parent_lookup_feature_flag_id": flag,
		"feature_flags/:key": "f", "versions/:version": "1", "scheduled_changes/:id": absent,
		"role_access/:id": w.newRoleAccess(t, flag), "actions/:id": w.create(t, base+"/actions", `{"name":"a","steps":[{"event":"e"}]}`),
		"cohorts/:id":    w.create(t, base+"/cohorts", `{"name":"c","is_static":true}`),
		"dashboards/:id": w.newDashboard(t), "members/:user_id": w.newMember(t), "roles/:role_id": role,
		"role_memberships/:id": membership, "resource_access/:resource": "feature_flags", "keys/:id": w.newProjectKey(t),
		"project_secret_api_keys/:id": w.newSecretKey(t),
		"personal_api_keys/:id":       absent, "events/:uuid": "01900000-0000-7000-8000-0000" + absent, "dead_letters/:id": absent,
		"persons/:id": absent, "groups_types/:index": absent, "event_definitions/:id": absent, "property_definitions/:id": absent,
		"sessions/:session_id": w.newSessionID(t),
		"flags/:key":           absent, "signup/:invite_id": absent, "invites/:invite_id": w.newInvite(t),
		"deliveries/:delivery_id": absent, "plugins/:name": absent, "pprof/:profile": "cmdline", "static/:file": "array.js", "static/:version": "1", "1/:file": "array.js",
	}
}

// path returns the path of a line with its parameters filled in.
func (w *accessWorld) path(t *testing.T, a access, c *credential, disposable bool) string {
	t.Helper()
	segments := strings.Split(a.path, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, ":") {
			continue
		}
		kind := segments[i-1] + "/" + s
		last := i == len(segments)-1
		switch value, ok := w.objects[kind]; {
		case kind == "array/:token", kind == "datadog/:token":
			segments[i] = c.key
			if c.key == "" {
				segments[i] = "-"
			}
		case a.in("/@me/sessions/"):
			segments[i] = absent
		case a.method == "DELETE" && last && disposable:
			segments[i] = w.newObject(t, kind, value)
		case !ok:
			t.Fatalf("%s: the test has no object for %s", a.name(), kind)
		default:
			segments[i] = value
		}
		if kind == "roles/:role_id" && a.method == "DELETE" && disposable && !last {
			role, membership := w.newRole(t)
			segments[i], w.objects["role_memberships/:id"] = role, membership
		}
	}
	return strings.Join(segments, "/")
}

// newObject returns an object that a request may delete.
func (w *accessWorld) newObject(t *testing.T, kind, value string) string {
	t.Helper()
	switch kind {
	case "projects/:project_id":
		p, _, err := w.auth.CreateProject(t.Context(), auth.NewProject{OrganizationID: w.first.ID, Name: "Short"})
		check(t, err)
		return strconv.FormatInt(p.ID, 10)
	case "roles/:role_id":
		role, _ := w.newRole(t)
		return role
	case "members/:user_id":
		return w.newMember(t)
	case "invites/:invite_id":
		return w.newInvite(t)
	case "sessions/:session_id":
		return w.newSessionID(t)
	case "keys/:id":
		return w.newProjectKey(t)
	case "project_secret_api_keys/:id":
		return w.newSecretKey(t)
	case "dashboards/:id":
		return w.newDashboard(t)
	case "role_access/:id":
		return w.newRoleAccess(t, w.objects["feature_flags/:id"])
	}
	return value
}

// body returns the smallest body by which a request reaches the check of access.
func (w *accessWorld) body(a access) string {
	switch {
	case a.method == "GET" || a.method == "HEAD" || a.method == "OPTIONS":
		return ""
	case strings.HasSuffix(a.path, "/rollback"):
		return `{"version":1}`
	case strings.HasSuffix(a.path, "/role_access"):
		return fmt.Sprintf(`{"role_id":%q}`, w.access)
	}
	return "{}"
}

// create creates an object as the first operator and returns its id.
func (w *accessWorld) create(t *testing.T, path, body string) string {
	t.Helper()
	status, answer := w.as(t, w.PersonalKey, "POST", path, body)
	var made struct{ ID any }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status >= 300 {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
	if n, ok := made.ID.(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	return fmt.Sprint(made.ID)
}

// emptyRole returns a role without members.
func (w *accessWorld) emptyRole(t *testing.T) string {
	t.Helper()
	r, err := w.auth.CreateRole(t.Context(), auth.NewRole{OrganizationID: w.first.ID, Name: apikey.New("r"), FlagsAccessLevel: auth.CanView})
	check(t, err)
	return r.ID
}

// newRole returns a role with one member.
func (w *accessWorld) newRole(t *testing.T) (role, membership string) {
	t.Helper()
	role = w.emptyRole(t)
	m, err := w.auth.AddRoleMember(t.Context(), w.first.ID, role, w.users["viewer"].ID)
	check(t, err)
	return role, m.ID
}

func (w *accessWorld) newRoleAccess(t *testing.T, flag string) string {
	t.Helper()
	return w.create(t, "/api/projects/1/feature_flags/"+flag+"/role_access", fmt.Sprintf(`{"role_id":%q}`, w.emptyRole(t)))
}

func (w *accessWorld) newMember(t *testing.T) string {
	t.Helper()
	u, err := w.auth.CreateUser(t.Context(), auth.NewUser{Email: apikey.New("m") + "@example.com", FirstName: "x", OrganizationID: w.first.ID, Level: auth.LevelMember})
	check(t, err)
	return u.UUID
}

func (w *accessWorld) newInvite(t *testing.T) string {
	t.Helper()
	return w.create(t, "/api/organizations/@current/invites", fmt.Sprintf(`{"target_email":%q}`, apikey.New("i")+"@example.com"))
}

// newSession returns a session of a user and its token.
func (w *accessWorld) newSession(t *testing.T, user int64) (sessions.Session, string) {
	t.Helper()
	h, token, err := w.sessions.Create(t.Context(), user, sessions.Origin{Method: sessions.ByLink})
	check(t, err)
	return h.Session, token
}

func (w *accessWorld) newSessionID(t *testing.T) string {
	t.Helper()
	s, _ := w.newSession(t, w.users["viewer"].ID)
	return strconv.FormatInt(s.ID, 10)
}

func (w *accessWorld) newProjectKey(t *testing.T) string {
	t.Helper()
	k, err := w.auth.CreateProjectKey(t.Context(), auth.NewProjectKey{ProjectID: w.First.Project.ID, Label: "short"})
	check(t, err)
	return strconv.FormatInt(k.ID, 10)
}

func (w *accessWorld) newSecretKey(t *testing.T) string {
	t.Helper()
	k, _, err := w.auth.SecretKeys.Create(t.Context(), secretkey.NewKey{ProjectID: w.First.Project.ID, Label: "short", Scopes: []string{"feature_flag:read"}}, nil)
	check(t, err)
	return strconv.FormatInt(k.ID, 10)
}

// newDashboard returns the usage dashboard of a new flag.
func (w *accessWorld) newDashboard(t *testing.T) string {
	t.Helper()
	flag := "/api/projects/1/feature_flags/" + w.create(t, "/api/projects/1/feature_flags", fmt.Sprintf(`{"key":%q}`, apikey.New("k")))
	if status, answer := w.as(t, w.PersonalKey, "POST", flag+"/dashboard", "{}"); status != 200 {
		t.Fatalf("dashboard: %d %s", status, answer)
	}
	var list struct {
		Results []struct{ ID int64 }
	}
	_, answer := w.as(t, w.PersonalKey, "GET", "/api/projects/1/dashboards?limit=1000", "")
	check(t, json.Unmarshal([]byte(answer), &list))
	newest := int64(0)
	for _, d := range list.Results {
		newest = max(newest, d.ID)
	}
	return strconv.FormatInt(newest, 10)
}
