package decide_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// scopedProject has flags for some runtimes, contexts and devices.
func scopedProject() *memorySource {
	const everyone = `{"groups":[` + flagstest.Everyone + `]}`
	s := &memorySource{stored: eval.ProjectDefinitions{GroupTypes: map[string]int{"company": 0}, Flags: []eval.Definition{
		flagstest.Define(1, "all", everyone), flagstest.Define(2, "client", everyone), flagstest.Define(3, "server", everyone),
		flagstest.Define(4, "web", everyone), flagstest.Define(5, "survey-targeting-a", everyone), flagstest.Define(6, "needs-web", flagstest.DependsOn("4", "true")),
	}}}
	s.stored.Flags[1].Runtime, s.stored.Flags[2].Runtime = eval.ClientRuntime, eval.ServerRuntime
	s.stored.Flags[3].Contexts = []string{"web", "app"}
	return s
}

func TestRequestsGetTheFlagsOfTheirRuntimeAndContexts(t *testing.T) {
	t.Parallel()
	base := serve(t, scopedProject(), decide.Lookups{})
	const both = "all needs-web survey-targeting-a web"
	for _, c := range []struct{ name, agent, query, body, want string }{
		{"a browser", "Mozilla/5.0 (X11)", "", "", "all client needs-web survey-targeting-a web"},
		{"a mobile library", "posthog-ios/3.1", "", "", "all client needs-web survey-targeting-a web"},
		{"a server library", "posthog-python/7.91.1", "", "", "all needs-web server survey-targeting-a web"},
		{"curl", "curl/8.0", "", "", "all needs-web server survey-targeting-a web"},
		{"an unknown program", "thing/1", "", "", both},
		{"the request names its runtime", "Mozilla/5.0", "", `,"evaluation_runtime":"SERVER"`, "all needs-web server survey-targeting-a web"},
		{"all runtimes", "thing/1", "", `,"evaluation_runtime":"all"`, "all client needs-web server survey-targeting-a web"},
		{"a shared context", "thing/1", "", `,"evaluation_contexts":["x","web"]`, both},
		{"another context", "thing/1", "", `,"evaluation_contexts":["x"]`, "all survey-targeting-a"},
		{"the older name", "thing/1", "", `,"evaluation_environments":["x"]`, "all survey-targeting-a"},
		{"no context", "thing/1", "", `,"evaluation_contexts":[]`, both},
		{"surveys", "thing/1", "&only_evaluate_survey_feature_flags=true", "", "survey-targeting-a"},
		{"surveys in the body", "thing/1", "", `,"only_evaluate_survey_feature_flags":true`, "survey-targeting-a"},
		{"selected flags", "posthog-node/5.70.0", "", `,"flag_keys_to_evaluate":["client","server"]`, "server"},
	} {
		for _, path := range []string{"/decide?v=3", "/flags?v=1"} {
			status, got, _ := post(t, base+path+c.query, "application/json", `{"token":"phc_test","distinct_id":"u"`+c.body+`}`, "User-Agent", c.agent)
			on := []string{}
			for key, value := range got["featureFlags"].(map[string]any) {
				if value == true {
					on = append(on, key)
				}
			}
			slices.Sort(on)
			if status != 200 || fmt.Sprint(on) != "["+c.want+"]" {
				t.Errorf("%s %s: %d %v", c.name, path, status, on)
			}
		}
	}
	_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u"}`, "User-Agent", "thing/1", "Origin", "https://app.test")
	if got["featureFlags"].(map[string]any)["client"] != true {
		t.Errorf("a request with an origin: %v", got["featureFlags"])
	}
}

// A project without a flag for the client has an empty answer, also in an evaluation
// that has not been used before.
func TestNoFlagOfTheRuntime(t *testing.T) {
	t.Parallel()
	s := scopedProject()
	s.stored.Flags = s.stored.Flags[2:3]
	base := serve(t, s, decide.Lookups{})
	for range 20 {
		runtime.GC()
		runtime.GC() // empties the pools
		_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u"}`, "User-Agent", "Mozilla/5.0")
		if flags := got["featureFlags"].(map[string]any); len(flags) > 0 {
			t.Fatalf("a browser got %v", flags)
		}
	}
}

func TestFlagsBucketByDevice(t *testing.T) {
	t.Parallel()
	s := &memorySource{stored: eval.ProjectDefinitions{GroupTypes: map[string]int{"company": 0}, Flags: []eval.Definition{
		flagstest.Define(1, "half", `{"groups":[{"properties":[],"rollout_percentage":50}],`+flagstest.Variants+`}`),
		flagstest.Define(2, "everyone", `{"groups":[`+flagstest.Everyone+`]}`),
		flagstest.Define(3, "company", `{"aggregation_group_type_index":0,"groups":[`+flagstest.Everyone+`]}`),
		flagstest.Define(4, "held", `{"groups":[`+flagstest.Everyone+`],"holdout":{"id":1,"exclusion_percentage":50}}`),
		flagstest.Define(5, "mixed", `{"groups":[`+flagstest.NoOne+`,{"properties":[],"rollout_percentage":100,"aggregation_group_type_index":0}],"early_exit":true}`),
	}}}
	for i := range s.stored.Flags {
		s.stored.Flags[i].ByDevice, s.stored.Flags[i].ExperienceContinuity = true, true
	}
	base := serve(t, s, decide.Lookups{})
	ask := func(body string) map[string]any {
		_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u","$anon_distinct_id":"anon","groups":{"company":"c"}`+body+`}`)
		return got["featureFlags"].(map[string]any)
	}
	for i := range 40 {
		device := fmt.Sprint("device-", i)
		want := map[string]any{"everyone": true, "company": true, "mixed": false, "half": false, "held": true}
		if bucket.Of("half", device, "") <= 0.5 {
			want["half"] = "control"
			if bucket.Of("half", device, "variant") >= 0.5 {
				want["half"] = "blue"
			}
		}
		if bucket.OfHoldout(device) <= 0.5 {
			want["held"] = "holdout-1"
		}
		for _, body := range []string{`,"$device_id":"` + device + `"`, `,"device_id":"` + device + `"`, `,"device_id":"other","$device_id":"` + device + `"`, `,"person_properties":{"$device_id":"` + device + `"}`} {
			if got := ask(body); !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", body, got, want)
			}
		}
	}
	for _, body := range []string{"", `,"$device_id":null`, `,"$device_id":""`} {
		if got := ask(body); !maps.Equal(got, map[string]any{"everyone": false, "company": true, "half": false, "held": false, "mixed": true}) {
			t.Errorf("without a device (%s): %v", body, got)
		}
	}
}

func TestWrongTypesAreRejected(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	for body, field := range map[string]string{
		`"groups":"company"`: "groups", `"groups":["company"]`: "groups", `"person_properties":"x"`: "person_properties", `"group_properties":7`: "group_properties",
		`"group_properties":{"company":"x"}`: "group_properties", `"$groups":true`: "$groups", `"person_properties":[1]`: "person_properties",
	} {
		status, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u",`+body+`}`)
		if status != 400 || got["code"] != "invalid_input" || got["attr"] != nil && got["attr"] != field {
			t.Errorf("%s: %d %v", body, status, got)
		}
	}
	for _, body := range []string{`"groups":[],"person_properties":[],"group_properties":[]`, `"groups":null,"person_properties":null,"group_properties":null`, `"group_properties":{"company":[],"x":null}`, `"groups":{"company":null,"x":[1]}`} {
		if status, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u",`+body+`}`); status != 200 {
			t.Errorf("%s: %d %v", body, status, got)
		}
	}
}

func TestAliasesOfRequestFields(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	_, got, _ := post(t, base+"/decide?v=3", "application/json",
		`{"token":"phc_test","distinct_id":"u","$properties":{"email":"a@corp.test"},"$groups":{"company":"c"},"$group_properties":{"company":{"plan":"pro"}},"timezone":"Asia/Tokyo"}`)
	if flags := got["featureFlags"].(map[string]any); flags["mail"] != true || flags["company"] != true {
		t.Errorf("got %v", flags)
	}
}

func TestRecordsOfVersions(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), around(&memoryStore{err: errors.New("the disk is gone")}))
	record := func(path, key string) string {
		_, got, _ := post(t, base+path, "application/json", `{"token":"phc_test","distinct_id":"u"}`)
		if got["errorsWhileComputingFlags"] != true || got["minimalFlagCalledEvents"] != nil {
			t.Errorf("%s: %v", path, got)
		}
		return fmt.Sprint(got["flags"].(map[string]any)[key])
	}
	const failed = `reason:map[code:stored_data_unavailable condition_index:<nil> description:Stored data cannot be read]`
	for _, c := range []struct{ path, key, want string }{
		{"/decide?v=4", "mail", `<nil>`},
		{"/flags?v=2", "mail", `map[enabled:false failed:true key:mail metadata:map[description:<nil> has_experiment:false id:4 payload:<nil> version:1] ` + failed + ` variant:<nil>]`},
		{"/flags?v=4", "mail", `map[failed:true key:mail metadata:map[config_version:1 description:<nil> has_experiment:false id:4 payload:<nil> version:1] ` + failed + ` value:<nil>]`},
		{"/flags?v=4", "on", `map[key:on metadata:map[config_version:1 description:<nil> has_experiment:false id:1 payload:{"a":1} version:1] reason:map[code:condition_match condition_index:0 description:Matched condition set 1] value:true]`},
		{"/flags?v=3", "blue", `map[key:blue metadata:map[config_version:1 description:<nil> has_experiment:false id:3 payload:7 variant_key:blue version:1] reason:map[code:condition_match condition_index:0 description:Matched condition set 1] value:blue]`},
		{"/flags?v=4", "off", `map[key:off metadata:map[config_version:1 description:<nil> has_experiment:false id:2 payload:<nil> version:1] reason:map[code:out_of_rollout_bound condition_index:0 description:Out of rollout bound] value:false]`},
	} {
		if got := record(c.path, c.key); got != c.want {
			t.Errorf("%s %s\n got %s\nwant %s", c.path, c.key, got, c.want)
		}
	}
}

func TestMinimalFlagCalledEvents(t *testing.T) {
	t.Parallel()
	cfg := decide.DefaultConfig()
	cfg.MinimalFlagCalledEvents = true
	snapshots, err := decide.NewSnapshots(cfg, sampleProject(), nil, nil)
	if err == nil {
		err = snapshots.Poll(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, decide.Lookups{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), decide.NewHTTP(d, nil))
	for path, want := range map[string]any{"/flags?v=2": true, "/flags?v=4": true, "/flags?v=1": nil, "/decide?v=4": nil, "/decide?v=3": nil} {
		if _, got, _ := post(t, base+path, "application/json", `{"token":"phc_test","distinct_id":"u"}`); got["minimalFlagCalledEvents"] != want {
			t.Errorf("%s: %v", path, got["minimalFlagCalledEvents"])
		}
	}
}

func TestRequestIDsAreUUIDs(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	version4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for range 20 {
		if _, got, _ := post(t, base+"/flags?v=2", "application/json", `{"token":"phc_test","distinct_id":"u"}`); !version4.MatchString(fmt.Sprint(got["requestId"])) {
			t.Errorf("got %v", got["requestId"])
		}
	}
}

func TestIdentifierThatIsAnObjectHasSortedNames(t *testing.T) {
	t.Parallel()
	w := &memoryStore{people: map[string]string{`{"a":[1,{"c":3,"d":4}],"b":1}`: `{"email":"u@corp.test"}`}}
	base := serve(t, sampleProject(), around(w))
	_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":{"b": 1, "a": [1, {"d":4,"c":3}]}}`)
	if flags := got["featureFlags"].(map[string]any); flags["mail"] != true {
		t.Errorf("the person of capture is not found: %v", flags)
	}
}
