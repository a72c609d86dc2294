//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// flag is one flag of the corpus. newest marks a rule that older clients are
// documented to evaluate differently in local evaluation.
type flag struct {
	key     string
	newest  bool
	filters string
}

var corpus = []flag{
	{"everyone", false, `{"groups":[{"properties":[],"rollout_percentage":100}]}`},
	{"off", false, `{"groups":[{"properties":[],"rollout_percentage":0}]}`},
	{"simple-flag", false, `{"groups":[{"properties":[],"rollout_percentage":45}]}`},
	{"multivariate-flag", false, `{"groups":[{"properties":[],"rollout_percentage":55}],"multivariate":{"variants":[
		{"key":"first","rollout_percentage":50},{"key":"second","rollout_percentage":20},{"key":"third","rollout_percentage":20},
		{"key":"fourth","rollout_percentage":5},{"key":"fifth","rollout_percentage":5}]},
		"payloads":{"first":"{\"cta\":\"Buy\"}","second":"42"}}`},
	{"pro", false, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro","team"]}],"rollout_percentage":100}],"payloads":{"true":"{\"a\":1}"}}`},
	{"not-free", false, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"is_not","value":["free"]}],"rollout_percentage":100}]}`},
	{"mail", false, `{"groups":[{"properties":[{"key":"email","type":"person","operator":"icontains","value":"@example"}],"rollout_percentage":100}]}`},
	{"no-mail", false, `{"groups":[{"properties":[{"key":"email","type":"person","operator":"not_icontains","value":"@example"}],"rollout_percentage":100}]}`},
	{"pattern", false, `{"groups":[{"properties":[{"key":"email","type":"person","operator":"regex","value":"^user[0-4]+@"}],"rollout_percentage":100}]}`},
	{"anti-pattern", false, `{"groups":[{"properties":[{"key":"email","type":"person","operator":"not_regex","value":"^user[0-4]+@"}],"rollout_percentage":100}]}`},
	{"grown-up", false, `{"groups":[{"properties":[{"key":"age","type":"person","operator":"gte","value":18}],"rollout_percentage":100}]}`},
	{"young", false, `{"groups":[{"properties":[{"key":"age","type":"person","operator":"lt","value":18}],"rollout_percentage":100}]}`},
	{"set", false, `{"groups":[{"properties":[{"key":"country","type":"person","operator":"is_set","value":"is_set"}],"rollout_percentage":100}]}`},
	{"recent", true, `{"groups":[{"properties":[{"key":"joined","type":"person","operator":"is_date_after","value":"2024-06-01"}],"rollout_percentage":100}]}`},
	{"both", true, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"pro"},{"key":"age","type":"person","operator":"gt","value":30}],"rollout_percentage":60}]}`},
	{"either", true, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"pro"}],"rollout_percentage":20},{"properties":[],"rollout_percentage":30}]}`},
	{"override", true, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"team"}],"rollout_percentage":100,"variant":"b"},{"properties":[],"rollout_percentage":80}],
		"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":50}]}}`},
	{"version", true, `{"groups":[{"properties":[{"key":"version","type":"person","operator":"semver_gte","value":"1.10.0"}],"rollout_percentage":100}]}`},
	{"case", true, `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["PRO"]}],"rollout_percentage":100}]}`},
}

// fraction is created after the tests of the clients that refuse the whole list of
// flags if a percentage in it is not a whole number.
var fraction = flag{"fraction", true, `{"groups":[{"properties":[],"rollout_percentage":33.3}]}`}

type person struct {
	ID         string         `json:"id"`
	Properties map[string]any `json:"properties"`
}

func people() []person {
	out := make([]person, 200)
	plans := []string{"free", "pro", "team"}
	for i := range out {
		out[i] = person{ID: fmt.Sprintf("distinct_id_%d", i), Properties: map[string]any{
			"plan": plans[i%3], "age": i % 60, "country": "nl", "email": fmt.Sprintf("user%d@%s", i, []string{"example.test", "other.test"}[i%2]),
			"joined": fmt.Sprintf("2024-%02d-15", i%12+1), "version": fmt.Sprintf("1.%d.0", i%20),
		}}
	}
	return out
}

type clientResult struct {
	Remote   map[string]map[string]any `json:"remote"`
	Local    map[string]map[string]any `json:"local"`
	Payloads map[string]map[string]any `json:"payloads"`
	Flag     any                       `json:"flag"`
	Failures []string                  `json:"failures"`
}

// client is one unmodified client library. command runs in the directory dir of
// testdata. newest says that it knows the newest rules of local evaluation, fractions
// that it reads percentages that are not whole numbers.
type client struct {
	name, dir string
	newest    bool
	fractions bool
	command   []string
}

// clients has those that read no fractions first.
var clients = []client{
	{"posthog-go 1.2.24", "go", false, false, []string{"v1.2.24/judge"}},
	{"posthog-go 1.22.0", "go", false, false, []string{"v1.22.0/judge"}},
	{"posthog-go newest of the proxy", "go", false, false, []string{"latest/judge"}},
	{"posthog-server 2.3.3", "java", true, false, []string{"java", "-cp", "lib/*", "Judge.java"}},
	{"posthog-node 3.6", "node", false, true, []string{"node", "judge.mjs", "posthog-node-3.6"}},
	{"posthog-node 5.70.0", "node", true, true, []string{"node", "judge.mjs", "posthog-node-newest"}},
	{"posthog-python 7.91.1", "python", true, true, []string{"newest/bin/python", "judge.py"}},
	{"posthog-rs 0.30.0", "rust", true, true, []string{"target/debug/posthog"}},
}

// TestClients evaluates the corpus with each client, locally and remotely, and sends
// events with it. Local and remote values agree, and all clients get the same values.
func TestClients(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, f := range corpus {
		s.create(t, f)
	}
	s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{"key": "switched-off", "active": false}, nil, http.StatusCreated)
	var reference map[string]map[string]any
	tested := corpus
	for i, c := range clients {
		if c.fractions && len(tested) == len(corpus) {
			s.create(t, fraction)
			tested, reference = append(slices.Clone(corpus), fraction), nil
		}
		t.Run(c.name, func(t *testing.T) {
			run := fmt.Sprintf("run%d", i)
			got := c.run(t, s, run, tested)
			if len(got.Failures) > 0 {
				t.Errorf("the client reported failures: %q", got.Failures)
			}
			if got.Flag != true {
				t.Errorf("probe flag: got %v, want true", got.Flag)
			}
			compareFlags(t, got, tested, c.newest)
			if reference == nil {
				reference = got.Remote
			}
			if !reflect.DeepEqual(reference, got.Remote) {
				t.Error("the remote values differ from those of the first client")
			}
			checkArrived(t, s, run)
		})
	}
}

// run uses the client for all people and returns its results.
func (c client) run(t *testing.T, s *server, run string, flags []flag) clientResult {
	t.Helper()
	keys := make([]string, len(flags))
	for i, f := range flags {
		keys[i] = f.key
	}
	s, count := s.counted(t)
	var got clientResult
	script(t, install(t, c.dir), s.task(map[string]any{"ids": people(), "run": run, "probe": "pro", "keys": keys}), &got, c.command...)
	if asked := count("/flags") + count("/decide"); asked > len(people())+5 {
		t.Errorf("the client asked the server %d times for flags of %d people: local evaluation asks too", asked, len(people()))
	}
	return got
}

// task adds the address and the keys of the server to the input of a script.
func (s *server) task(fields map[string]any) map[string]any {
	fields["url"], fields["project_key"], fields["personal_key"] = s.url, s.project, s.personal
	return fields
}

// compareFlags compares the local evaluation of the client with the answers of the
// server.
func compareFlags(t *testing.T, got clientResult, tested []flag, newest bool) {
	t.Helper()
	compared := 0
	for id, remote := range got.Remote {
		if len(remote) != len(tested) {
			t.Fatalf("%s got %d flags, want %d: inactive flags are left out, flags at 0 %% are not", id, len(remote), len(tested))
		}
		for _, f := range tested {
			if f.newest && !newest {
				continue
			}
			local, ok := got.Local[id][f.key]
			if !ok {
				t.Errorf("%s for %s: the client could not evaluate it locally", f.key, id)
				continue
			}
			if compared++; local != remote[f.key] {
				t.Errorf("%s for %s: local %v, remote %v", f.key, id, local, remote[f.key])
			}
		}
	}
	if compared < 200*10 {
		t.Errorf("compared only %d values", compared)
	}
}

// checkArrived waits until every event of the run is in the event store, once each,
// and in the file sink, in order for each user.
func checkArrived(t *testing.T, s *server, run string) {
	t.Helper()
	places := map[string]func(*testing.T, string) []event{"event store": s.stored, "file sink": s.delivered}
	for place, list := range places {
		eventually(t, time.Minute, "the events are in the "+place, func() error {
			found := map[float64]bool{}
			last := map[string]float64{}
			for _, e := range list(t, "ordered") {
				if !strings.HasPrefix(e.DistinctID, run+"-") {
					continue
				}
				n, _ := e.Properties["n"].(float64)
				if e.Properties["note"] != `naïve 💻 "quoted"` {
					t.Fatalf("%s: the text has changed: %q", place, e.Properties["note"])
				}
				if place == "file sink" && n < last[e.DistinctID] {
					t.Fatalf("%s: events of %s are out of order", place, e.DistinctID)
				}
				last[e.DistinctID] = n
				if found[n] && place == "event store" {
					t.Fatalf("%s: event %v is stored twice", place, n)
				}
				found[n] = true
			}
			if len(found) != 25 {
				return fmt.Errorf("%d of 25 events", len(found))
			}
			return nil
		})
	}
	eventually(t, time.Minute, "the identified person's stored properties decide a flag", func() error {
		var answer struct {
			FeatureFlags map[string]any `json:"featureFlags"`
		}
		s.do(t, http.MethodPost, "/decide/?v=3", map[string]any{"api_key": s.project, "distinct_id": run + "-stored"}, &answer, http.StatusOK)
		if answer.FeatureFlags["pro"] != true || answer.FeatureFlags["grown-up"] != true {
			return fmt.Errorf("flags: %v", sorted(answer.FeatureFlags))
		}
		return nil
	})
}

func sorted(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		out = append(out, fmt.Sprintf("%s=%v", k, v))
	}
	sort.Strings(out)
	return out
}

func (s *server) create(t *testing.T, f flag) {
	t.Helper()
	s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{"key": f.key, "filters": json.RawMessage(f.filters)}, nil, http.StatusCreated)
}
