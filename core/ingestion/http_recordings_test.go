package ingestion_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// exchange is one recorded request of a real client.
type exchange struct {
	Method, Path, Query string
	Headers             map[string]string
	Body                []byte `json:"body_b64"`
	Decoded             json.RawMessage
}

// recordings reads every recorded request to one of our paths.
func recordings(t *testing.T) map[string][]exchange {
	t.Helper()
	files, err := filepath.Glob("testdata/wire/*.jsonl")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	out := map[string][]exchange{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var x exchange
			if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(name)] = append(out[filepath.Base(name)], x)
		}
	}
	return out
}

// TestCaptureRealClients replays recorded requests of real clients and compares the
// events with those that the recorder parsed.
func TestCaptureRealClients(t *testing.T) {
	t.Parallel()
	for client, sent := range recordings(t) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			j := new(memoryJournal)
			k := keys()
			k.Projects["phc_fake_project_key_for_tests_only"] = auth.Project{ID: 9}
			base := webtest.Serve(t, k, capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()))
			for i, x := range sent {
				var header []string
				for name, value := range x.Headers {
					header = append(header, name, value)
				}
				got := send(t, x.Method, base+x.Path+"?"+x.Query, "", string(x.Body), header...)
				if got.status != 200 || got.body != `{"status":1}` {
					t.Fatalf("request %d: %d %s", i, got.status, got.body)
				}
				want := expected(t, x)
				events, said := j.events(t)
				if len(events) != len(want) || said != "" {
					t.Fatalf("request %d: %d events, want %d; %s", i, len(events), len(want), said)
				}
				for n, e := range events {
					compare(t, e, want[n])
				}
				j.clear()
			}
		})
	}
}

// expected lists the events the recorder saw in a request.
func expected(t *testing.T, x exchange) []map[string]any {
	t.Helper()
	text := []byte(x.Decoded)
	if len(text) == 0 {
		text = x.Body
	}
	var list []map[string]any
	if json.Unmarshal(text, &list) == nil {
		return list
	}
	var one map[string]any
	if err := json.Unmarshal(text, &one); err != nil {
		t.Fatal(err)
	}
	batch, ok := one["batch"].([]any)
	if !ok {
		return []map[string]any{one}
	}
	for _, e := range batch {
		list = append(list, e.(map[string]any))
	}
	return list
}

func compare(t *testing.T, got sdk.Event, want map[string]any) {
	t.Helper()
	var props map[string]any
	if err := json.Unmarshal(got.Properties, &props); err != nil {
		t.Fatal(err)
	}
	sent, _ := want["properties"].(map[string]any)
	name, ok := want["event"].(string)
	if !ok {
		name = "$identify"
	}
	if got.Name != name {
		t.Errorf("event %q, want %q", got.Name, name)
	}
	id := want["distinct_id"]
	for _, other := range []any{want["$distinct_id"], sent["distinct_id"]} {
		if id == nil {
			id = other
		}
	}
	if got.DistinctID != id {
		t.Errorf("distinct id %q, want %v", got.DistinctID, id)
	}
	for k, v := range sent {
		switch k {
		case "$lib_custom_api_host": // the recorder hid it
			continue
		case "$elements", "$elements_chain":
			if props[k] != nil || got.ElementsChain == "" || k == "$elements_chain" && got.ElementsChain != v {
				t.Errorf("%s %v became %v and the chain %q", k, v, props[k], got.ElementsChain)
			}
			continue
		}
		if !reflect.DeepEqual(props[k], v) && want[k] == nil {
			t.Errorf("property %s is %v, want %v", k, props[k], v)
		}
	}
	for _, k := range []string{"$set", "$set_once"} {
		if v, ok := want[k].(map[string]any); ok && !reflect.DeepEqual(props[k], v) {
			t.Errorf("%s is %v, want %v", k, props[k], v)
		}
	}
}

// TestDecodeElementsOfEveryBrowserLibrary clicks through the same page with
// libraries that send lists and with one that sends chains.
func TestDecodeElementsOfEveryBrowserLibrary(t *testing.T) {
	t.Parallel()
	sent := recordings(t)
	want := chainsOf(t, sent["posthog-js-1.449.2.jsonl"])
	if len(want) < 5 {
		t.Fatalf("the newest library sent %q", want)
	}
	for _, client := range []string{"posthog-js-1.57.4-base64.jsonl", "posthog-js-1.57.4-gzip.jsonl", "posthog-js-1.57.4-lz64.jsonl", "posthog-js-1.96.1.jsonl"} {
		if got := chainsOf(t, sent[client]); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", client, got, want)
		}
	}
}

// chainsOf decodes the recorded requests of a library.
func chainsOf(t *testing.T, sent []exchange) (out []string) {
	t.Helper()
	for _, x := range sent {
		if z, err := gzip.NewReader(bytes.NewReader(x.Body)); err == nil && len(x.Decoded) == 0 {
			if x.Decoded, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range expected(t, x) {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range ingestiontest.Decode(ingestiontest.Record(string(data))).Events {
				if got.Name == "$autocapture" {
					out = append(out, got.ElementsChain)
				}
			}
		}
	}
	return out
}
