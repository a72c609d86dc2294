package ingestion_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web/envelope"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

func TestReadEnvelope(t *testing.T) {
	cases := []struct {
		name, body string
		token      string
		items      string
		count      int
	}{
		{"a single event", `{"api_key":"k","event":"a"}`, "k", `{"api_key":"k","event":"a"}`, 1},
		{"the key inside the properties", ` {"event":"a","properties":{"token":"k"}} `, "k", `{"event":"a","properties":{"token":"k"}}`, 1},
		{"a key beside the event goes before one inside", `{"token":"k","properties":{"token":"x"}}`, "k", `{"token":"k","properties":{"token":"x"}}`, 1},
		{"$token of /engage/", `{"$token":"k","api_key":"x"}`, "k", `{"$token":"k","api_key":"x"}`, 1},
		{"white space around a key", `{"api_key":" k\n"}`, "k", `{"api_key":" k\n"}`, 1},
		{"a batch", `{"batch":[{"event":"a"}, {}],"api_key":"k","historical_migration":false}`, "k", `[{"event":"a"}, {}]`, 2},
		{"a batch whose events carry the key", `{"batch":[{"properties":{"token":"k"}},{"token":"k "},{}]}`, "k", `[{"properties":{"token":"k"}},{"token":"k "},{}]`, 3},
		{"the envelope's key wins over those of the events", `{"batch":[{"token":"x"},{"token":"y"}],"token":"k"}`, "k", `[{"token":"x"},{"token":"y"}]`, 2},
		{"an array", `[{"properties":{"token":"k"}},{"properties":{"token":"k"}}]`, "k", `[{"properties":{"token":"k"}},{"properties":{"token":"k"}}]`, 2},
		{"an array with an escaped key", `[{"token":"\u006b"},{"token":"k"}]`, "k", `[{"token":"\u006b"},{"token":"k"}]`, 2},
		{"an empty batch", `{"api_key":"k","batch":[]}`, "k", `[]`, 0},
		{"an empty array", `[]`, "", `[]`, 0},
		{"a batch of nothing is a single event", `{"api_key":"k","batch":null}`, "k", `{"api_key":"k","batch":null}`, 1},
		{"of two keys of one name the last counts", `{"api_key":"x","api_key":"k"}`, "k", `{"api_key":"x","api_key":"k"}`, 1},
		{"no key at all", `{"event":"a","token":null,"api_key":""}`, "", `{"event":"a","token":null,"api_key":""}`, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env, err := envelope.Read([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if env.Token != c.token || string(env.Items) != c.items || env.Count != c.count {
				t.Errorf("got %q %d %s", env.Token, env.Count, env.Items)
			}
		})
	}
}

func TestReadEnvelopeFields(t *testing.T) {
	env, err := envelope.Read([]byte(`{"batch":[{"event":"a"}],"sent_at":"2024-05-01T10:00:02Z","historical_migration":true,"project_id":7}`))
	if err != nil || env.SentAt != "2024-05-01T10:00:02Z" || !env.Historical || env.ProjectID != "7" {
		t.Errorf("got %+v, %v", env, err)
	}
	env, err = envelope.Read([]byte(`[{"project_id":"7"},{"project_id":"8"}]`))
	if err != nil || env.ProjectID != "7" {
		t.Errorf("of a list the first item tells the project; got %+v, %v", env, err)
	}
}

func TestReadEnvelopeRejects(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	cases := []struct {
		name, body, code string
		kind             fault.Kind
	}{
		{"a batch that is text", `{"api_key":"k","batch":"[{}]"}`, "invalid_payload", fault.Malformed},
		{"a batch that is an object", `{"api_key":"k","batch":{"a":1}}`, "invalid_payload", fault.Malformed},
		{"text", `"a"`, "invalid_payload", fault.Malformed},
		{"null", `null`, "invalid_payload", fault.Malformed},
		{"a broken word", `{"x":tru}`, "invalid_payload", fault.Malformed},
		{"something after the end", `{} {}`, "invalid_payload", fault.Malformed},
		{"a comma too many", `{"a":1,}`, "invalid_payload", fault.Malformed},
		{"a comma too many in a list", `[1,]`, "invalid_payload", fault.Malformed},
		{"a number with a leading zero", `{"a":01}`, "invalid_payload", fault.Malformed},
		{"a body that ends early", `{"a":[1,{"b":"c`, "invalid_payload", fault.Malformed},
		{"a NUL after the end", "{}\x00", "invalid_payload", fault.Malformed},
		{"two thousand brackets", `{"a":` + deep + `}`, "invalid_payload", fault.Malformed},
		{"a key that is a number", `{"api_key":5}`, "invalid_api_key", fault.Unauthenticated},
		{"different keys in one array", `[{"token":"a"},{"properties":{"token":"b"}}]`, "invalid_api_key", fault.Unauthenticated},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := envelope.Read([]byte(c.body))
			if f := fault.From(err); f == nil || f.Code != c.code || f.Kind != c.kind {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzReadEnvelope holds the scanner against the reader of the standard
// library: what that one refuses we refuse, but for NaN, the infinities and bare
// control characters in a text.
func FuzzReadEnvelope(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,{"b":"\u00e9\\\""}],"token":"k"}`, `[{"properties":{"token":"a"}},{}]`, `{"batch":[[],{}]}`,
		"{\"a\":\"\xff\"}", `{"a":NaN}`, `[1,,2]`, `{"a":1e}`, `{"a" "b"}`, `[-]`, `{"a":"\ud83d"}`, ` [ ] `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		env, err := envelope.Read(body)
		lenient := bytes.Contains(body, []byte("NaN")) || bytes.Contains(body, []byte("Infinity")) ||
			bytes.ContainsFunc(body, func(r rune) bool { return r < ' ' })
		if err == nil {
			if !lenient && !json.Valid(body) {
				t.Fatalf("accepted %q", body)
			}
			if !lenient && !json.Valid(env.Items) {
				t.Fatalf("items %q of %q", env.Items, body)
			}
			rec := event.Record{Items: env.Items}
			if got := ingestiontest.Decode(rec); int(got.Items) != env.Count || len(got.Events)+dropped(got) != env.Count {
				t.Fatalf("%d items counted in %q, decoded %+v", env.Count, body, got)
			}
			return
		}
		f := fault.From(err)
		if f == nil {
			t.Fatal(err)
		}
		if json.Valid(body) && strings.Contains(f.Detail, "not valid JSON") && bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) < 1000 {
			t.Fatalf("refused %q", body)
		}
	})
}

func dropped(d *event.Decoded) (n int) {
	for _, notice := range d.Notices {
		if notice.Dropped {
			n++
		}
	}
	return n
}
