package flags_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	activitylog "github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/access"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/callseries"
	"github.com/guidonhq/guidon/core/flags/continuity"
	"github.com/guidonhq/guidon/core/flags/dashboards"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/local"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/flags/source"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// server is the management of flags over HTTP, with a real router and database.
type server struct {
	payloads    *sealed.Keyring
	t           testing.TB
	url         string
	key         string
	now         atomic.Pointer[time.Time]
	store       *flags.Store
	cohorts     *cohorts.Store
	definitions *source.Definitions
	revisions   *revision.Writer
	snapshots   *decide.Snapshots
	service     *flags.Service
	accounts    *accounts
	stored      storedPersons
	calls       storedEvents
	series      callCounter
	operators   slowOperator
	db          *db.DB
}

// accounts has users 1 (Ada, owner) and 2 (Bob, member), and roles.
type accounts struct {
	levels map[int64]auth.Levels
	roles  map[string]auth.Role
}

var ada = auth.User{ID: 1, UUID: "018b0c1e-1111-7aaa-8bbb-0123456789ab", DistinctID: "ada-1", FirstName: "Ada", Email: "ada@corp.test", IsEmailVerified: true}
var bob = auth.User{ID: 2, UUID: "018b0c1e-2222-7aaa-8bbb-0123456789ab", DistinctID: "bob-2", FirstName: "Bob", Email: "bob@corp.test"}

func (p *accounts) UsersByID(_ context.Context, ids []int64) (map[int64]auth.User, error) {
	out := map[int64]auth.User{}
	for _, u := range []auth.User{ada, bob} {
		if slices.Contains(ids, u.ID) {
			out[u.ID] = u
		}
	}
	return out, nil
}

func (p *accounts) Levels(_ context.Context, who *auth.Principal) (auth.Levels, error) {
	return p.levels[who.User.ID], nil
}

func (p *accounts) RolesByID(_ context.Context, _ string, ids []string) (map[string]auth.Role, error) {
	out := map[string]auth.Role{}
	for _, id := range ids {
		if r, ok := p.roles[id]; ok {
			out[id] = r
		}
	}
	return out, nil
}

// projects has fixed group types, and every project.
type projects struct{}

func (projects) GroupTypes(context.Context, int64) (map[string]int, error) {
	return map[string]int{"company": 0, "project": 1}, nil
}

func (projects) Project(_ context.Context, id int64) (auth.Project, error) {
	return auth.Project{ID: id, Timezone: "UTC"}, nil
}

// keys returns keys of Ada and Bob with all scopes, one that only reads, and one for
// project 1 only.
func keys() webtest.Keys {
	k := webtest.Keys{
		Projects: map[string]auth.Project{
			"phc_one": {ID: 1, OrganizationID: "018b0c1e-0000-7aaa-8bbb-000000000001", Name: "One", Timezone: "UTC"},
			"phc_two": {ID: 2, OrganizationID: "018b0c1e-0000-7aaa-8bbb-000000000001", Name: "Two", Timezone: "UTC"},
		},
		Principals: map[string]*auth.Principal{},
	}
	k.Projects["phc_fake_project_key_for_tests_only"] = k.Projects["phc_one"]
	k.Principals["phx_fake_personal_key_for_tests_only"] = &auth.Principal{User: ada, OrgLevel: auth.LevelOwner, Scopes: []string{"*"}, KeyID: 4}
	k.Principals["phx_ada"] = &auth.Principal{User: ada, OrgLevel: auth.LevelOwner, Scopes: []string{"*"}, KeyID: 1}
	k.Principals["phx_bob"] = &auth.Principal{User: bob, OrgLevel: auth.LevelMember, Scopes: []string{"*"}, KeyID: 2}
	k.Principals["phx_read"] = &auth.Principal{User: ada, OrgLevel: auth.LevelOwner, Scopes: []string{"feature_flag:read"}, KeyID: 3}
	k.Principals["phs_one"] = &auth.Principal{Scopes: []string{"feature_flag:read"}, ProjectIDs: []int64{1}, CurrentProjectID: 1, KeyID: -1, SecretKey: true}
	k.Principals["phx_one"] = &auth.Principal{User: ada, OrgLevel: auth.LevelOwner, Scopes: []string{"*"}, ProjectIDs: []int64{1}, KeyID: 5}
	return k
}

func newServer(t testing.TB, d *db.DB) *server {
	t.Helper()
	h := &server{t: t, key: "phx_ada", db: d, accounts: &accounts{
		levels: map[int64]auth.Levels{1: {Default: auth.CanEdit, Admin: true}, 2: {Default: auth.CanEdit}},
		roles:  map[string]auth.Role{},
	}}
	h.payloads = newKeyring(t)
	h.store, h.cohorts = flags.NewStore(d), cohorts.NewStore(d)
	revisions := revision.NewStore(d)
	definitions := source.New(h.store, h.cohorts, revisions, projects{}, projects{})
	h.definitions = definitions
	var err error
	if h.snapshots, err = decide.NewSnapshots(decide.DefaultConfig(), definitions, nil, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	cfg := flags.DefaultManageConfig()
	h.revisions = revision.NewWriter(revisions, h.snapshots, nil)
	counter := audience.New(cfg.CountBudget, audience.Dependencies{
		Persons: &h.stored, Groups: storedGroups{&h.stored}, Source: definitions, StaticCohorts: h.cohorts, HashKeys: continuity.NewStore(d), Now: h.clock,
	})
	policy := access.NewPolicy(h.accounts, h.store)
	cohortService := cohorts.NewService(cohorts.Config{Limits: cfg.Limits(), Members: cfg.CohortMembers}, h.cohorts, cohorts.Dependencies{
		Revisions: h.revisions, Activity: activitylog.NewLog(d), Users: h.accounts, Access: policy, Flags: h.store, Counter: counter, Now: h.clock,
		Operators: &h.operators, Sets: h.snapshots,
	})
	usage := dashboards.NewService(dashboards.NewStore(d), dashboards.Dependencies{
		Revisions: h.revisions, Flags: h.store, Users: h.accounts, Access: policy, Events: &h.calls, Now: h.clock,
	})
	h.service, err = flags.NewService(cfg, h.store, flags.Dependencies{
		Revisions: h.revisions, Cohorts: h.cohorts, HashKeys: continuity.NewStore(d), Dashboards: usage, Audience: counter, Users: h.accounts, Roles: h.accounts, Now: h.clock,
		Operators: &h.operators, Sets: h.snapshots, Payloads: h.payloads, Definitions: definitions,
	})
	if err != nil {
		t.Fatal(err)
	}
	decider, err := decide.NewDecider(decide.DefaultConfig(), h.snapshots, decide.Lookups{Memberships: h.cohorts, HashKeys: continuity.NewStore(d)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + webtest.Start(t, webtest.Config(), keys(), zap.NewNop(), nil,
		flags.NewHTTP(h.service, decider), local.NewHTTP(h.snapshots, definitions, local.Options{}), cohorts.NewHTTP(cohortService, nil), dashboards.NewHTTP(usage, nil),
		callseries.NewHTTP(callseries.New(callseries.NewStore(d), &h.series, h.clock))).Address()
	return h
}

func (h *server) clock() time.Time {
	if t := h.now.Load(); t != nil {
		return *t
	}
	return time.Now()
}

func (h *server) at(t time.Time) { h.now.Store(&t) }

// onBoth runs a test on both databases.
func onBoth(t *testing.T, run func(t *testing.T, h *server)) {
	t.Helper()
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		run(t, newServer(t, d))
	})
}

// onOne returns a server on SQLite, for tests that need no second database.
func onOne(t *testing.T) *server {
	t.Helper()
	return newServer(t, dbtest.SQLite(t))
}

// answer is the answer to a request.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

const base = "/api/projects/1/feature_flags/"

func (h *server) do(method, path string, body string, header ...string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, bytes.NewBufferString(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if h.key != "" {
		req.Header.Set("Authorization", "Bearer "+h.key)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{h.t, res.StatusCode, res.Header, raw}
}

// as returns the same server with another key.
func (h *server) as(key string) *server { return &server{t: h.t, url: h.url, key: key} }

// in returns the same server for a subtest.
func (h *server) in(t testing.TB) *server { return &server{t: t, url: h.url, key: h.key} }

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// fails checks for an error with a code and a field, "" for none.
func (a answer) fails(status int, code, attr string) answer {
	a.t.Helper()
	a.want(status)
	var e struct {
		Code, Detail string
		Attr         *string
	}
	a.into(&e)
	got := ""
	if e.Attr != nil {
		got = *e.Attr
	}
	if e.Code != code || got != attr {
		a.t.Fatalf("error %s at %q, want %s at %q: %s", e.Code, got, code, attr, a.body)
	}
	if e.Detail == "" {
		a.t.Fatalf("no detail: %s", a.body)
	}
	return a
}

func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("answer %q: %v", a.body, err)
	}
}

// flag is the answer read as a flag.
type flag struct {
	ID                   int64           `json:"id"`
	Name                 string          `json:"name"`
	Key                  string          `json:"key"`
	Filters              json.RawMessage `json:"filters"`
	Active               bool            `json:"active"`
	Deleted              bool            `json:"deleted"`
	CreatedBy            *auth.User      `json:"created_by"`
	CreatedAt            string          `json:"created_at"`
	UpdatedAt            string          `json:"updated_at"`
	IsSimple             bool            `json:"is_simple_flag"`
	Rollout              *int64          `json:"rollout_percentage"`
	Tags                 []string        `json:"tags"`
	Version              int64           `json:"version"`
	Status               string          `json:"status"`
	CanEdit              bool            `json:"can_edit"`
	UsageDashboard       *int64          `json:"usage_dashboard"`
	AnalyticsDashboards  []int64         `json:"analytics_dashboards"`
	PerformedRollback    *bool           `json:"performed_rollback"`
	ExperienceContinuity bool            `json:"ensure_experience_continuity"`
}

func (a answer) flag(status int) flag {
	a.t.Helper()
	a.want(status)
	var f flag
	a.into(&f)
	return f
}

func (h *server) create(body string) flag {
	h.t.Helper()
	return h.do("POST", base, body).flag(http.StatusCreated)
}

func (h *server) patch(id int64, body string) answer {
	h.t.Helper()
	return h.do("PATCH", path(id), body)
}

func path(id int64) string { return base + itoa(id) + "/" }

func itoa(n int64) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

// page is a list envelope.
type page[T any] struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
}

const cohortsPath = "/api/projects/1/cohorts/"

// cohort is the answer read as a cohort.
type cohort struct {
	ID       int64           `json:"id"`
	Name     string          `json:"name"`
	Filters  json.RawMessage `json:"filters"`
	Count    *int64          `json:"count"`
	IsStatic bool            `json:"is_static"`
	Deleted  bool            `json:"deleted"`
	Version  int64           `json:"version"`
}

func (h *server) cohort(body string) cohort {
	h.t.Helper()
	var c cohort
	h.do("POST", cohortsPath, body).want(http.StatusCreated).into(&c)
	return c
}

// storedPersons is the stored persons and groups.
type storedPersons struct {
	persons []persons.Person
	groups  map[int][]persons.Group
	slow    time.Duration // for each page of two
}

func walkPages[T any](slow time.Duration, list []T, fn func(page []T) error) error {
	for page := range slices.Chunk(list, 2) {
		time.Sleep(slow)
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

func (c *storedPersons) Walk(_ context.Context, _ int64, fn func(page []persons.Person) error) error {
	return walkPages(c.slow, c.persons, fn)
}

func (c *storedPersons) WalkProperties(ctx context.Context, projectID int64, fn func(page []persons.Person) error) error {
	return c.Walk(ctx, projectID, func(page []persons.Person) error {
		page = slices.Clone(page)
		for i := range page {
			page[i].DistinctIDs = []string{}
		}
		return fn(page)
	})
}

func (c *storedPersons) WalkAfter(ctx context.Context, projectID int64, after persons.Position, fn func(page []persons.Person) error) error {
	return c.Walk(ctx, projectID, func(page []persons.Person) error {
		return fn(slices.DeleteFunc(slices.Clone(page), func(p persons.Person) bool { return p.Position().Compare(after) <= 0 }))
	})
}

func (c *storedPersons) Count(context.Context, int64) (int, error) { return len(c.persons), nil }

type storedGroups struct{ *storedPersons }

func (c storedGroups) Walk(_ context.Context, _ int64, index int, fn func(page []persons.Group) error) error {
	return walkPages(c.slow, c.groups[index], fn)
}

func (c storedGroups) Count(_ context.Context, _ int64, index int) (int, error) {
	return len(c.groups[index]), nil
}

// storedEvents answers counts and records the queries.
type storedEvents struct {
	mu      sync.Mutex
	queries []events.CountQuery
	answer  func(q events.CountQuery) []events.Count
}

func (c *storedEvents) Counts(_ context.Context, q events.CountQuery) ([]events.Count, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries = append(c.queries, q)
	if c.answer == nil {
		return nil, nil
	}
	return c.answer(q), nil
}

// createDirectly creates a flag without HTTP.
func (h *server) createDirectly(who *auth.Principal, project auth.Project, key string) {
	h.t.Helper()
	rollout := json.RawMessage(`{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro"]}],"rollout_percentage":50}]}`)
	if _, err := h.service.Create(h.t.Context(), who, project, flags.Input{Key: &key, Filters: rollout}); err != nil {
		h.t.Fatal(err)
	}
}
