package decide_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// memorySource is a Source with fixed content.
type memorySource struct {
	stored eval.ProjectDefinitions
	stamp  atomic.Int64
	err    atomic.Pointer[error]
}

func (s *memorySource) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	if err := s.err.Load(); err != nil {
		return eval.ProjectDefinitions{}, *err
	}
	return s.stored, nil
}

func (s *memorySource) Revisions(context.Context) (map[int64]int64, error) {
	if err := s.err.Load(); err != nil {
		return nil, *err
	}
	return map[int64]int64{1: s.stamp.Load()}, nil
}

// memoryStore has stored data about people and counts reads.
type memoryStore struct {
	people, groups  map[string]string
	lists           []int64
	kept            map[string]string
	err             error
	asked, askedFor atomic.Int64
	anonymous       atomic.Pointer[string]
}

func (w *memoryStore) Properties(_ context.Context, _ int64, distinctID string) ([]byte, bool, error) {
	w.asked.Add(1)
	p, ok := w.people[distinctID]
	return []byte(p), ok, w.err
}

func (w *memoryStore) GroupProperties(_ context.Context, _ int64, groupType, key string) ([]byte, bool, error) {
	w.askedFor.Add(1)
	p, ok := w.groups[groupType+":"+key]
	return []byte(p), ok, w.err
}

func (w *memoryStore) StaticCohorts(context.Context, int64, string) ([]int64, error) {
	return w.lists, w.err
}

func (w *memoryStore) HashKeys(_ context.Context, _ int64, _, anonymous string, _ []string) (map[string]string, error) {
	w.anonymous.Store(&anonymous)
	return w.kept, w.err
}

func decider(tb testing.TB, s *memorySource, l decide.Lookups) (*decide.Decider, *decide.Snapshots) {
	tb.Helper()
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, s, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := snapshots.Poll(context.Background()); err != nil {
		tb.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, l, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return d, snapshots
}

func around(w *memoryStore) decide.Lookups {
	return decide.Lookups{People: w, Memberships: w, HashKeys: w}
}

func serve(tb testing.TB, s *memorySource, l decide.Lookups) string {
	tb.Helper()
	d, _ := decider(tb, s, l)
	return webtest.Serve(tb, webtest.DefaultKeys(), decide.NewHTTP(d, nil))
}

// sampleProject is a project with one flag of each kind.
func sampleProject() *memorySource {
	inactive := flagstest.Define(8, "inactive", `{}`)
	inactive.Active = false
	return &memorySource{stored: eval.ProjectDefinitions{
		GroupTypes: map[string]int{"company": 0},
		Flags: []eval.Definition{
			flagstest.Define(1, "on", `{"groups":[`+flagstest.Everyone+`],"payloads":{"true":"{\"a\":1}"}}`),
			flagstest.Define(2, "off", `{"groups":[`+flagstest.NoOne+`]}`),
			flagstest.Define(3, "blue", `{"groups":[{"properties":[],"variant":"blue"}],`+flagstest.Variants+`,"payloads":{"blue":"7"}}`),
			flagstest.Define(4, "mail", `{"groups":[{"properties":[{"key":"email","type":"person","operator":"icontains","value":"@corp.test"}]}]}`),
			flagstest.Define(5, "company", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","type":"group","value":"pro"}]}]}`),
			inactive,
		},
	}}
}

func post(t testing.TB, url, contentType, body string, header ...string) (int, map[string]any, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return send(t, req)
}

func send(t testing.TB, req *http.Request) (int, map[string]any, http.Header) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	return res.StatusCode, out, res.Header
}

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestDecideSupportsEveryVersion(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	const ask = `{"api_key":"phc_test","distinct_id":"u","person_properties":{"email":"A@CORP.test"}}`
	keys := []any{"on", "blue", "mail"}
	onlyOn := map[string]any{"on": true, "blue": "blue", "mail": true}
	all := map[string]any{"on": true, "off": false, "blue": "blue", "mail": true, "company": false}
	for _, c := range []struct {
		path  string
		flags any
	}{
		{"/decide", keys}, {"/decide/?v=1", keys}, {"/decide?v=0", keys}, {"/decide?v=-3", keys}, {"/decide?v=2", onlyOn},
		{"/decide?v=abc", onlyOn}, {"/decide?v=1.19.0", onlyOn}, {"/decide?v=3", all}, {"/decide/?v=1&v=3", all}, {"/flags/?v=1", all},
		{"/flags?config=true", all}, {"/flags?v=x", all},
	} {
		status, got, _ := post(t, base+c.path, "application/json", ask)
		if status != 200 || !reflect.DeepEqual(got["featureFlags"], c.flags) {
			t.Errorf("%s: got %d %v", c.path, status, got["featureFlags"])
		}
		if got["errorComputingFlags"] != false || got["errorsWhileComputingFlags"] != false {
			t.Errorf("%s: both error booleans must be there", c.path)
		}
	}
	_, got, _ := post(t, base+"/decide/?v=3", "application/json", ask)
	if !reflect.DeepEqual(got["featureFlagPayloads"], map[string]any{"on": `{"a":1}`, "blue": "7"}) {
		t.Errorf("payloads: %v", got["featureFlagPayloads"])
	}
	for _, name := range []string{"config", "editorParams", "toolbarParams", "isAuthenticated", "supportedCompression", "sessionRecording", "siteApps", "requestId"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for _, path := range []string{"/decide?v=4", "/decide?v=9", "/flags", "/flags/?v=2"} {
		_, got, _ := post(t, base+path, "application/json", ask)
		details, _ := got["flags"].(map[string]any)
		if len(details) != 5 {
			t.Fatalf("%s: %v", path, got)
		}
		want := map[string]any{
			"key": "blue", "enabled": true, "variant": "blue",
			"reason":   map[string]any{"code": "condition_match", "condition_index": 0.0, "description": "Matched condition set 1"},
			"metadata": map[string]any{"id": 3.0, "version": 1.0, "description": nil, "payload": "7", "has_experiment": false},
		}
		if !reflect.DeepEqual(details["blue"], want) {
			t.Errorf("%s: got %v", path, details["blue"])
		}
	}
}

func TestDecideRequests(t *testing.T) {
	t.Parallel()
	w := &memoryStore{people: map[string]string{"u": `{"email":"u@corp.test"}`, "23": `{"email":"n@corp.test"}`}, groups: map[string]string{"company:7": `{"plan":"pro"}`, `company:{"a":[2],"b":1}`: `{"plan":"pro"}`}}
	base := serve(t, sampleProject(), around(w))
	body := `{"token":"phc_test","distinct_id":"u"}`
	form := "data=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(body)))
	long := strings.Repeat("é", 300)
	w.people[strings.Repeat("é", 200)] = `{"email":"long@corp.test"}`
	for _, c := range []struct {
		name, query, contentType, body string
		header                         []string
		status                         int
		want                           map[string]any // of featureFlags, or of the error
	}{
		{name: "stored properties", body: body, want: map[string]any{"mail": true, "on": true, "company": false}},
		{name: "override", body: `{"token":"phc_test","distinct_id":"u","person_properties":{"email":"u@other.test"}}`, want: map[string]any{"mail": false}},
		{name: "override of somebody never seen", body: `{"token":"phc_test","distinct_id":"new","person_properties":{"email":"u@corp.test"}}`, want: map[string]any{"mail": true}},
		{name: "a numeric distinct id is its text", body: `{"token":"phc_test","distinct_id":23}`, want: map[string]any{"mail": true}},
		{name: "a long distinct id is cut to 200 characters", body: `{"token":"phc_test","distinct_id":"` + long + `"}`, want: map[string]any{"mail": true}},
		{name: "$distinct_id", body: `{"$token":"phc_test","$distinct_id":"u"}`, want: map[string]any{"mail": true}},
		{name: "a numeric group key and stored group properties", body: `{"token":"phc_test","distinct_id":"u","groups":{"company":7}}`, want: map[string]any{"company": true}},
		{name: "a group key that is an object, as capture stores it", body: `{"token":"phc_test","distinct_id":"u","groups":{"company":{"b": 1, "a":[2]}}}`, want: map[string]any{"company": true}},
		{name: "group override", body: `{"token":"phc_test","distinct_id":"u","groups":{"company":"x"},"group_properties":{"company":{"plan":"pro"}}}`, want: map[string]any{"company": true}},
		{name: "nulls are nothing", body: `{"token":"phc_test","distinct_id":"u","groups":null,"person_properties":null,"group_properties":null,"flag_keys_to_evaluate":null}`, want: map[string]any{"mail": true}},
		{name: "only some flags", body: `{"token":"phc_test","distinct_id":"u","flag_keys_to_evaluate":["on","inactive","nope","on"]}`, want: map[string]any{"on": true, "mail": nil, "inactive": nil}},
		{name: "no flags asked for", body: `{"token":"phc_test","distinct_id":"u","flag_keys_to_evaluate":[]}`, want: map[string]any{"on": nil}},
		{name: "disabled, without distinct id", body: `{"token":"phc_test","disable_flags":true}`, want: map[string]any{"on": nil}},
		{name: "form with base64", contentType: "application/x-www-form-urlencoded", body: form, want: map[string]any{"mail": true}},
		{name: "gzip by header", contentType: "application/json", body: gz(body), header: []string{"Content-Encoding", "gzip"}, want: map[string]any{"mail": true}},
		{name: "gzip by query", query: "&compression=gzip-js", contentType: "text/plain", body: gz(body), want: map[string]any{"mail": true}},
		{name: "gzip by magic", contentType: "text/plain", body: gz(body), want: map[string]any{"mail": true}},
		{name: "an array stands for its first element", body: "[" + body + "]", want: map[string]any{"mail": true}},
		{name: "a personal key with a project", body: `{"token":"phx_test","project_id":1,"distinct_id":"u"}`, want: map[string]any{"mail": true}},
		{name: "key in the query, nothing else", query: "&token=phc_test", status: 400, want: map[string]any{"code": "missing_distinct_id"}},
		{name: "no distinct id", body: `{"token":"phc_test"}`, status: 400, want: map[string]any{"type": "validation_error", "code": "missing_distinct_id", "detail": "Decide requires a distinct_id."}},
		{name: "null distinct id", body: `{"token":"phc_test","distinct_id":null}`, status: 400, want: map[string]any{"code": "missing_distinct_id"}},
		{name: "empty distinct id", body: `{"token":"phc_test","distinct_id":""}`, status: 400, want: map[string]any{"code": "missing_distinct_id"}},
		{name: "unknown key", body: `{"token":"phc_other","distinct_id":"u"}`, status: 401, want: map[string]any{"type": "authentication_error", "code": "invalid_api_key"}},
		{name: "no key", body: `{"distinct_id":"u"}`, status: 401, want: map[string]any{"code": "invalid_api_key"}},
		{name: "no body at all", status: 400, want: map[string]any{"code": "no_data"}},
		{name: "a personal key without a project: the current one of its user", body: `{"token":"phx_test","distinct_id":"u"}`, want: map[string]any{"blue": "blue"}},
		{name: "a personal key with an unknown project", body: `{"token":"phx_test","project_id":4711,"distinct_id":"u"}`, status: 400, want: map[string]any{"code": "invalid_project", "attr": "project_id"}},
		{name: "an invalid personal key", body: `{"token":"phx_other","project_id":1,"distinct_id":"u"}`, status: 401, want: map[string]any{"code": "invalid_personal_api_key"}},
		{name: "not JSON", body: `{`, status: 400, want: map[string]any{"type": "validation_error", "code": "malformed_data"}},
		{name: "no object", body: `"undefined"`, status: 400, want: map[string]any{"code": "malformed_data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.contentType == "" {
				c.contentType = "application/json"
			}
			if c.status == 0 {
				c.status = 200
			}
			for _, path := range []string{"/decide/?v=3", "/flags?v=1"} {
				status, got, _ := post(t, base+path+c.query, c.contentType, c.body, c.header...)
				part := got
				if status == 200 {
					part, _ = got["featureFlags"].(map[string]any)
				}
				if status != c.status {
					t.Fatalf("%s: got %d %v", path, status, got)
				}
				for name, want := range c.want {
					if part[name] != want {
						t.Errorf("%s: %s: got %v, want %v", path, name, part[name], want)
					}
				}
			}
		})
	}
}

func TestDecideReadsStoreOnlyForFilters(t *testing.T) {
	t.Parallel()
	w := &memoryStore{people: map[string]string{"u": `{"email":"u@corp.test"}`}}
	d, _ := decider(t, sampleProject(), around(w))
	ctx := context.Background()
	for _, c := range []struct {
		name          string
		q             eval.Request
		person, group int64
	}{
		{"a condition reads a stored property: once", eval.Request{DistinctID: "u"}, 1, 0},
		{"every property is in the request: never", eval.Request{DistinctID: "u", PersonProperties: json.RawMessage(`{"email":null}`)}, 0, 0},
		{"the flags asked for read none: never", eval.Request{DistinctID: "u", FlagKeys: []string{"on", "blue"}}, 0, 0},
		{"the group once, too", eval.Request{DistinctID: "u", Groups: map[string]string{"company": "a"}}, 1, 1},
	} {
		w.asked.Store(0)
		w.askedFor.Store(0)
		d.Decide(ctx, 1, &c.q)
		if w.asked.Load() != c.person || w.askedFor.Load() != c.group {
			t.Errorf("%s: asked %d times for the person, %d for the group", c.name, w.asked.Load(), w.askedFor.Load())
		}
	}
}

func TestFailedStoreLeavesOutDependentFlags(t *testing.T) {
	t.Parallel()
	w := &memoryStore{err: errors.New("the disk is gone")}
	base := serve(t, sampleProject(), around(w))
	for range 40 {
		status, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u"}`)
		want := map[string]any{"on": true, "off": false, "blue": "blue", "company": false}
		if status != 200 || !reflect.DeepEqual(got["featureFlags"], want) || got["errorComputingFlags"] != true || got["errorsWhileComputingFlags"] != true {
			t.Errorf("got %d %v", status, got)
		}
	}
	if n := w.asked.Load(); n < 1 || n > 25 { // the breaker opens after 20 lookups; then one per pause is made
		t.Errorf("a store that fails was asked %d times", n)
	}
	_, got, _ := post(t, base+"/flags?v=2", "application/json", `{"token":"phc_test","distinct_id":"u"}`)
	if details := got["flags"].(map[string]any); details["mail"].(map[string]any)["failed"] != true || len(details) != 5 {
		t.Errorf("got %v", details)
	}
}

// slowStore fails for the persons whose distinct id begins with slow.
type slowStore struct{ memoryStore }

func (w *slowStore) Properties(ctx context.Context, project int64, distinctID string) ([]byte, bool, error) {
	if strings.HasPrefix(distinctID, "slow") {
		return nil, false, context.DeadlineExceeded
	}
	return w.memoryStore.Properties(ctx, project, distinctID)
}

// A lookup that failed leaves out the flags of its own request only.
func TestFailedLookupDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	w := &slowStore{memoryStore{people: map[string]string{"u": `{"email":"u@corp.test"}`}}}
	base := serve(t, sampleProject(), decide.Lookups{People: w, Memberships: w, HashKeys: w})
	mail := func(id string) any {
		_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"`+id+`"}`)
		flags, _ := got["featureFlags"].(map[string]any)
		return flags["mail"]
	}
	for round := range 3 {
		for i := range 4 {
			if got := mail(fmt.Sprintf("slow-%d", i)); got != nil {
				t.Errorf("round %d: a failed lookup gives %v", round, got)
			}
		}
		if got := mail("u"); got != true {
			t.Errorf("round %d: got %v after failed lookups of others, want true", round, got)
		}
	}
}

func TestRequestsWithoutData(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/decide?v=3", 200}, {"GET", "/decide", 200}, {"GET", "/flags", 200}, {"HEAD", "/flags", 200}, {"HEAD", "/decide/", 200},
		{"OPTIONS", "/decide/", 200}, {"OPTIONS", "/flags/?v=2", 204}, {"PUT", "/flags", 405}, {"DELETE", "/decide", 405},
		{"GET", "/array/phc_other/config", 401}, {"GET", "/array/phc_other/config.js", 401},
	} {
		req, _ := http.NewRequest(c.method, base+c.path, nil)
		req.Header.Set("Origin", "https://app.test")
		status, got, header := send(t, req)
		if status != c.status || header.Get("Access-Control-Allow-Origin") != "https://app.test" {
			t.Errorf("%s %s: got %d %v %v", c.method, c.path, status, got, header)
		}
		if c.method == "GET" && c.status == 200 && (got["config"] == nil || got["flags"] == nil && got["featureFlags"] == nil) {
			t.Errorf("%s %s: got %v", c.method, c.path, got)
		}
	}
	req, _ := http.NewRequest(http.MethodGet, base+"/array/phc_test/config", nil)
	if _, got, _ := send(t, req); got["hasFeatureFlags"] != true || got["token"] != "phc_test" {
		t.Errorf("config: %v", got)
	}
	res, err := http.Get(base + "/array/phc_test/config.js")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	script, _ := io.ReadAll(res.Body)
	if !strings.HasPrefix(string(script), `(function(){window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};window._POSTHOG_REMOTE_CONFIG["phc_test"]={config:{"token":"phc_test",`) ||
		!strings.HasSuffix(string(script), `,siteApps:[]}})();`) {
		t.Errorf("script: %s", script)
	}
}

type exhausted struct{}

func (exhausted) FlagsExhausted(int64) bool { return true }

func TestOverQuotaReturnsNoFlags(t *testing.T) {
	t.Parallel()
	d, _ := decider(t, sampleProject(), decide.Lookups{})
	base := webtest.Serve(t, webtest.DefaultKeys(), decide.NewHTTP(d, exhausted{}))
	_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u"}`)
	if !reflect.DeepEqual(got["quotaLimited"], []any{"feature_flags"}) || len(got["featureFlags"].(map[string]any)) != 0 || got["errorComputingFlags"] != false {
		t.Errorf("got %v", got)
	}
}

func TestRequestIDOfCallerIsKept(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	const id = "7b0f6a2e-0000-4000-8000-000000000000"
	ask := `{"token":"phc_test","distinct_id":"u"}`
	if _, got, _ := post(t, base+"/flags?v=2", "application/json", ask, "X-Request-Id", id); got["requestId"] != id {
		t.Errorf("got %v", got["requestId"])
	}
	_, got, header := post(t, base+"/flags?v=2", "application/json", ask)
	if made := got["requestId"].(string); len(made) != 36 || strings.ReplaceAll(made, "-", "") != header.Get("X-Request-Id") {
		t.Errorf("got %v, the log has %s", got["requestId"], header.Get("X-Request-Id"))
	}
}

func TestExperienceContinuityKeepsAnonymousID(t *testing.T) {
	t.Parallel()
	d := flagstest.Define(1, "simple-flag", `{"groups":[{"properties":[],"rollout_percentage":45}]}`)
	d.ExperienceContinuity = true
	w := &memoryStore{kept: map[string]string{"simple-flag": "distinct_id_1"}}
	base := serve(t, &memorySource{stored: eval.ProjectDefinitions{Flags: []eval.Definition{d}}}, around(w))
	_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"distinct_id_0","$anon_distinct_id":"a"}`)
	if got["featureFlags"].(map[string]any)["simple-flag"] != true || *w.anonymous.Load() != "a" {
		t.Errorf("got %v, kept %q", got, *w.anonymous.Load())
	}
	w.err = errors.New("gone")
	_, got, _ = post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"distinct_id_0"}`)
	if len(got["featureFlags"].(map[string]any)) != 0 || got["errorComputingFlags"] != true {
		t.Errorf("got %v", got)
	}
}

// keepingStore is a memoryStore that keeps the requested ids, as a cache does.
type keepingStore struct {
	memoryStore
	mu  sync.Mutex
	ids []string
}

func (k *keepingStore) Properties(_ context.Context, _ int64, distinctID string) ([]byte, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids = append(k.ids, distinctID)
	return nil, false, nil
}

func TestStoresMayKeepIDs(t *testing.T) {
	t.Parallel()
	k := &keepingStore{}
	base := serve(t, sampleProject(), decide.Lookups{People: k})
	for i := range 20 {
		post(t, base+"/decide?v=3", "application/json", fmt.Sprintf(`{"token":"phc_test","distinct_id":"person-%02d"}`, i))
	}
	for i, id := range k.ids {
		if want := fmt.Sprintf("person-%02d", i); id != want {
			t.Errorf("got %q, want %q", id, want)
		}
	}
}

// decide_bytes bounds the JSON of a request after its encoding is removed, and the
// number of its values is a sixteenth of it.
func TestDecideRequestsAreBounded(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), around(&memoryStore{}))
	limit := decide.DefaultConfig().DecideBytes
	request := func(properties string) string {
		return `{"api_key":"phc_test","distinct_id":"u","person_properties":` + properties + `}`
	}
	text := func(n int) string { return request(`{"t":"` + strings.Repeat("x", n-len(request(`{"t":""}`))) + `"}`) }
	values := func(n int) string {
		return request("{\"list\":[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]}")
	}
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.String()
	}
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"as many bytes as allowed":   {text(limit), 200},
		"a byte more":                {text(limit + 1), 413},
		"a byte more, compressed":    {zip(text(limit + 1)), 413},
		"almost as many values":      {values(limit/16 - 10), 200},
		"too many values":            {values(limit/16 + 1), 413},
		"too many values,compressed": {zip(values(limit/16 + 1)), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/decide?v=3", "/flags?v=2"} {
				status, got, _ := post(t, base+path, "application/json", tc.body)
				if status != tc.status || status == 413 && got["code"] != "request_too_large" {
					t.Errorf("%s: %d %v, want %d", path, status, got, tc.status)
				}
			}
		})
	}
}
