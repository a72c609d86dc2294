package decide_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestRecordedRequestsOfRealClients(t *testing.T) {
	t.Parallel()
	keys := webtest.DefaultKeys()
	keys.Projects["phc_fake_project_key_for_tests_only"] = keys.Projects["phc_test"]
	inactive := flagstest.Define(7, "rec-inactive", `{"groups":[`+flagstest.Everyone+`]}`)
	inactive.Active = false
	s := &memorySource{stored: eval.ProjectDefinitions{GroupTypes: map[string]int{"organization": 0, "project": 1}, Flags: []eval.Definition{
		flagstest.Define(1, "rec-on", `{"groups":[`+flagstest.Everyone+`],"payloads":{"true":"{\"color\":\"blue\",\"n\":7}"}}`),
		flagstest.Define(2, "rec-off", `{"groups":[`+flagstest.NoOne+`]}`),
		flagstest.Define(3, "rec-half", `{"groups":[{"properties":[],"rollout_percentage":50}]}`),
		flagstest.Define(4, "rec-multi", `{"groups":[`+flagstest.Everyone+`],"multivariate":{"variants":[{"key":"control","rollout_percentage":34},{"key":"red","rollout_percentage":33},{"key":"green","rollout_percentage":33}]},
			"payloads":{"control":"\"c\"","red":"{\"hex\":\"#f00\"}","green":"[1,2,3]"}}`),
		flagstest.Define(5, "rec-mail", `{"groups":[{"properties":[{"key":"email","value":"@example.test","operator":"icontains","type":"person"}],"rollout_percentage":100}]}`),
		flagstest.Define(6, "rec-org", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","value":["enterprise"],"operator":"exact","type":"group","group_type_index":0}],"rollout_percentage":100}]}`),
		inactive,
	}}}
	w := &memoryStore{people: map[string]string{"u-1": `{"email":"u1@example.test"}`, "browser-user-1": `{"email":"b1@example.test"}`}}
	d, _ := decider(t, s, around(w))
	base := webtest.Serve(t, keys, decide.NewHTTP(d, nil))
	file, err := os.Open("testdata/wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var r struct {
			Client, Method, Path, Query, Answer string
			Headers                             map[string]string
			Body                                []byte `json:"body_b64"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest(r.Method, base+r.Path+"?"+r.Query, bytes.NewReader(r.Body))
		for name, value := range r.Headers {
			req.Header.Set(name, value)
		}
		if r.Method != http.MethodPost {
			if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode >= 300 || res.Body.Close() != nil {
				t.Errorf("%s %s %s: %v %v", r.Client, r.Method, r.Path, res, err)
			}
			continue
		}
		status, got, _ := send(t, req)
		var recorded map[string]any
		if err := json.Unmarshal([]byte(r.Answer), &recorded); err != nil {
			t.Fatal(err)
		}
		if status != 200 || got["errorsWhileComputingFlags"] != false {
			t.Errorf("%s %s line %d: %d %v", r.Client, r.Path, n+1, status, got)
		}
		want := valuesIn(recorded) // of all flags, whichever were asked for
		for key, value := range valuesIn(got) {
			if value != want[key] {
				t.Errorf("%s %s line %d: %s: got %s, want %s", r.Client, r.Path, n+1, key, value, want[key])
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d requests", n)
	}
}

// valuesIn reads the values and payloads out of an answer of any shape.
func valuesIn(answer map[string]any) map[string]string {
	out := map[string]string{}
	if values, ok := answer["featureFlags"].(map[string]any); ok {
		payloads, _ := answer["featureFlagPayloads"].(map[string]any)
		for key, value := range values {
			out[key] = fmt.Sprint(value, payloads[key])
		}
	}
	if details, ok := answer["flags"].(map[string]any); ok {
		for key, d := range details {
			d := d.(map[string]any)
			value := d["enabled"]
			if d["variant"] != nil {
				value = d["variant"]
			}
			out[key] = fmt.Sprint(value, d["metadata"].(map[string]any)["payload"])
		}
	}
	delete(out, "rec-inactive")
	return out
}
