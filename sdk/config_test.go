package sdk_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

type inner struct {
	Host string `json:"host" required:"true" doc:"where"`
	Port uint16 `json:"port"`
}

type everything struct {
	Path    string            `json:"path" required:"true" doc:"File to write."`
	Sync    bool              `json:"sync"`
	Count   int               `json:"count" min:"1" max:"9"`
	Ratio   float64           `json:"ratio"`
	Wait    time.Duration     `json:"wait" min:"1s"`
	Mode    string            `json:"mode" enum:"fast|safe"`
	Token   string            `json:"token" secret:"true"`
	Labels  map[string]string `json:"labels"`
	Servers []inner           `json:"servers"`
	Main    inner             `json:"main"`
	Spare   *inner            `json:"spare"`
	Address netip.Addr        `json:"address"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw"`
	Hidden  string            `json:"-"`
}

func defaults() *everything {
	return &everything{Sync: true, Count: 3, Wait: 2 * time.Second, Mode: "safe", Main: inner{Host: "localhost", Port: 80}}
}

func TestAConfigFillsTheStructAndKeepsTheDefaults(t *testing.T) {
	t.Parallel()
	got := defaults()
	err := sdk.DecodeConfig([]byte(`{
		"path": "/x", "count": 9, "ratio": 0.5, "wait": "1m30s", "token": null, "labels": {"a": "b"},
		"servers": [{"host": "one"}, {"host": "two", "port": 2}], "main": {"host": "three"}, "spare": {"host": "four"},
		"address": "10.0.0.1", "any": [1, "x"], "raw": {"b": 12345678901234567890}
	}`), got)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Path, want.Count, want.Ratio, want.Wait = "/x", 9, 0.5, 90*time.Second
	want.Labels = map[string]string{"a": "b"}
	want.Servers = []inner{{Host: "one"}, {Host: "two", Port: 2}}
	want.Main.Host, want.Spare = "three", &inner{Host: "four"}
	want.Address = netip.MustParseAddr("10.0.0.1")
	want.Any, want.Raw = []any{json.Number("1"), "x"}, json.RawMessage(`{"b":12345678901234567890}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAConfigThatIsWrongSaysWhere(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"required", `{}`, "/path: required (File to write.)"},
		{"a null is not given", `{"path": null}`, "/path: required"},
		{"unknown key", `{"path": "x", "cuont": 1}`, `/cuont: unknown key (did you mean "count"?)`},
		{"unknown key like none", `{"path": "x", "zzzzzzzz": 1}`, "/zzzzzzzz: unknown key"},
		{"key with a slash", `{"path": "x", "a/b~c": 1}`, "/a~1b~0c: unknown key"},
		{"string for a boolean", `{"path": "x", "sync": "yes"}`, `/sync: must be true or false (got "yes")`},
		{"fraction for a whole number", `{"path": "x", "count": 1.5}`, "/count: must be a whole number (got 1.5)"},
		{"below the minimum", `{"path": "x", "count": 0}`, "/count: must be at least 1"},
		{"above the maximum", `{"path": "x", "count": 10}`, "/count: must be at most 9"},
		{"number for a duration", `{"path": "x", "wait": 5}`, `/wait: must be a duration such as 250ms, 5s, 1m30s or 24h (got 5)`},
		{"duration below the minimum", `{"path": "x", "wait": "1ms"}`, "/wait: must be at least 1s"},
		{"not one of the choices", `{"path": "x", "mode": "slow"}`, `/mode: must be one of fast, safe (got "slow")`},
		{"inside a list", `{"path": "x", "servers": [{"host": "a"}, {"port": -1}]}`, "/servers/1/port: must be a whole number that is not negative (got -1)"},
		{"missing inside a list", `{"path": "x", "servers": [{}]}`, "/servers/0/host: required"},
		{"overflow", `{"path": "x", "main": {"host": "h", "port": 65536}}`, "/main/port: must be a whole number"},
		{"list for an object", `{"path": "x", "main": []}`, "/main: must be an object (got a list)"},
		{"object for a list", `{"path": "x", "servers": {}}`, "/servers: must be a list (got an object)"},
		{"text that does not parse", `{"path": "x", "address": "nowhere"}`, "/address: not a valid value"},
		{"not JSON", `{"path": `, "the config is not a JSON object"},
		{"two values", `{"path": "x"} {}`, "the config is not a JSON object"},
		{"a list", `[]`, "the config is not a JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := sdk.DecodeConfig([]byte(tt.text), defaults())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v", err)
			}
			if e, ok := errors.AsType[*sdk.Error](err); !ok || e.Class != sdk.ClassConfig {
				t.Errorf("not a config error: %v", err)
			}
		})
	}
}

func TestTheSchemaSaysWhatTheStructSays(t *testing.T) {
	t.Parallel()
	var s struct {
		Type                 string
		Required             []string
		AdditionalProperties bool
		Properties           map[string]struct {
			Type        string
			Description string
			Default     any
			Enum        []string
			Minimum     *float64
			WriteOnly   bool
			Items       struct{ Required []string }
		}
	}
	if err := json.Unmarshal(sdk.Schema(defaults()), &s); err != nil {
		t.Fatal(err)
	}
	p := s.Properties
	switch {
	case s.Type != "object" || s.AdditionalProperties || !reflect.DeepEqual(s.Required, []string{"path"}):
		t.Errorf("root %+v", s)
	case p["path"].Description != "File to write." || p["path"].Default != nil:
		t.Errorf("path %+v", p["path"])
	case p["wait"].Default != "2s" || p["sync"].Default != true || p["count"].Default != 3.0 || *p["count"].Minimum != 1:
		t.Errorf("defaults %+v", p)
	case !p["token"].WriteOnly || p["token"].Default != nil:
		t.Errorf("token %+v", p["token"])
	case !reflect.DeepEqual(p["mode"].Enum, []string{"fast", "safe"}):
		t.Errorf("mode %+v", p["mode"])
	case !reflect.DeepEqual(p["servers"].Items.Required, []string{"host"}):
		t.Errorf("servers %+v", p["servers"])
	}
	for _, name := range []string{"Hidden", "-"} {
		if _, there := p[name]; there {
			t.Errorf("%s is in the schema", name)
		}
	}
}

// FuzzDecodeConfig: no text, however odd, makes the decoder panic, and what it
// takes without an error it takes again after a round trip through JSON.
func FuzzDecodeConfig(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"path":"x"}`, `{"path":null}`, `[]`, `{"servers":[{"host":"a"},null]}`, `{"path":"x","wait":"1h","any":{"a":[]}}`,
		`{"path":"x","count":1e400}`, "{\"path\":\"\xff\"}", `{"path":"x","path":"y"}`, `{"labels":{"":null}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := defaults()
		if sdk.DecodeConfig(text, got) != nil {
			return
		}
		if got.Path == "" && !strings.Contains(string(text), `"path"`) {
			t.Errorf("a required field is missing: %s", text)
		}
		if got.Count < 1 || got.Count > 9 || got.Wait < time.Second {
			t.Errorf("out of bounds: %+v", got)
		}
	})
}
