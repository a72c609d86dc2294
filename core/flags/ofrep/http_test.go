package ofrep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/flags/ofrep"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// memorySource is a project with fixed definitions.
type memorySource struct{ stored eval.ProjectDefinitions }

func (s *memorySource) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	return s.stored, nil
}

func (s *memorySource) Revisions(context.Context) (map[int64]int64, error) {
	return map[int64]int64{1: s.stored.Revision}, nil
}

// people is a store of persons.
type people struct {
	properties string
	err        error
}

func (p people) Properties(context.Context, int64, string) ([]byte, bool, error) {
	return []byte(p.properties), p.properties != "", p.err
}

func (p people) GroupProperties(context.Context, int64, string, string) ([]byte, bool, error) {
	return nil, false, p.err
}

func newHTTP(tb testing.TB, s *memorySource, p people) *ofrep.HTTP {
	tb.Helper()
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, s, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := snapshots.Poll(context.Background()); err != nil {
		tb.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, decide.Lookups{People: p}, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return ofrep.NewHTTP(cfg, d, nil, nil, zap.NewNop())
}

func serve(tb testing.TB, s *memorySource, p people) string {
	tb.Helper()
	return webtest.Serve(tb, webtest.DefaultKeys(), newHTTP(tb, s, p))
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// ask sends a request with the project key. header replaces it.
func ask(tb testing.TB, url, body string, header ...string) answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if len(header) == 0 {
		header = []string{"Authorization", "Bearer phc_test"}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	if len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&a.body); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
	return a
}

const pathFlags = "/ofrep/v1/evaluate/flags"

// sample is a project with a flag of each kind.
func sample() *memorySource {
	inactive := flagstest.Define(20, "inactive", `{"groups":[`+flagstest.Everyone+`]}`)
	inactive.Active = false
	inactiveString := flagstest.Define(21, "inactive-string", `{"groups":[`+flagstest.Everyone+`],`+flagstest.Variants+`}`)
	inactiveString.Active = false
	typed := func(payloads string) string {
		return `{"groups":[{"properties":[{"key":"off","type":"person","operator":"is_not_set"}],"variant":"blue"}],` + flagstest.Variants + `,"payloads":` + payloads + `}`
	}
	return &memorySource{stored: eval.ProjectDefinitions{
		GroupTypes: map[string]int{"company": 0},
		Flags: []eval.Definition{
			flagstest.Define(1, "static", `{"groups":[`+flagstest.Everyone+`]}`),
			flagstest.Define(2, "targeted", `{"groups":[{"properties":[{"key":"plan","type":"person","value":"pro"}]}]}`),
			flagstest.Define(3, "nobody", `{"groups":[`+flagstest.NoOne+`]}`),
			flagstest.Define(4, "half", `{"groups":[{"properties":[],"rollout_percentage":50}]}`),
			flagstest.Define(5, "string", `{"groups":[{"properties":[{"key":"plan","type":"person","value":"pro"}]}],`+flagstest.Variants+`}`),
			flagstest.Define(6, "object", `{"groups":[{"properties":[{"key":"plan","type":"person","value":"pro"}]}],"payloads":{"true":"{\"a\":[1,{\"b\":null}]}"}}`),
			flagstest.Define(7, "noted", `{"groups":[`+flagstest.Everyone+`],"payloads":{"true":"\"a \\\"note\\\"\""}}`),
			flagstest.Define(8, "typed-boolean", typed(`{"control":"false","blue":"true"}`)),
			flagstest.Define(9, "typed-string", typed(`{"control":"\"bye\"","blue":"\"hi\""}`)),
			flagstest.Define(10, "typed-integer", typed(`{"control":"1","blue":"10"}`)),
			flagstest.Define(11, "typed-float", typed(`{"control":"0.1","blue":"1"}`)),
			flagstest.Define(12, "typed-object", typed(`{"control":"{}","blue":"{\"x\":1}"}`)),
			flagstest.Define(13, "mixed", typed(`{"control":"{}","blue":"7"}`)),
			flagstest.Define(14, "company", `{"aggregation_group_type_index":0,"groups":[`+flagstest.Everyone+`]}`),
			flagstest.Define(15, "seats", `{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"plan","type":"group","group_type_index":0,"value":"big"}]}]}`),
			flagstest.Define(16, "empty", `{"groups":[]}`),
			flagstest.Define(17, "held", `{"groups":[`+flagstest.Everyone+`],"holdout":{"id":7,"exclusion_percentage":100}}`),
			flagstest.Define(18, "enrolled", `{"groups":[`+flagstest.NoOne+`],"feature_enrollment":true}`),
			flagstest.Define(19, "broken", `{"groups":1}`),
			inactive, inactiveString,
			flagstest.Define(22, "a/ü ", `{"groups":[`+flagstest.Everyone+`]}`),
		},
	}}
}

func TestSingleFlag(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(), people{})
	pro := `{"context":{"targetingKey":"u","plan":"pro"}}`
	free := `{"context":{"targetingKey":"u","plan":"free","off":1}}`
	for _, c := range []struct{ key, body, want string }{
		{"static", free, `{"key":"static","reason":"STATIC","variant":"true","value":true,"metadata":{"flagId":1,"version":1,"type":"boolean","reasonCode":"condition_match","conditionIndex":0}}`},
		{"targeted", pro, `{"reason":"TARGETING_MATCH","variant":"true","value":true}`},
		{"targeted", free, `{"reason":"UNKNOWN","variant":"false","value":false}`},
		{"nobody", free, `{"reason":"SPLIT","variant":"false","value":false}`},
		{"half", pro, `{"reason":"SPLIT"}`},
		{"string", free, `{"reason":"UNKNOWN","variant":"false"}`},
		{"string", `{"context":{"targetingKey":"4","plan":"pro"}}`, `{"reason":"SPLIT","metadata":{"type":"string"}}`},
		{"object", pro, `{"reason":"TARGETING_MATCH","variant":"true","value":{"a":[1,{"b":null}]}}`},
		{"object", free, `{"reason":"UNKNOWN","variant":"false"}`},
		{"noted", pro, `{"value":true,"metadata":{"payload":"\"a \\\"note\\\"\""}}`},
		{"typed-boolean", pro, `{"reason":"TARGETING_MATCH","variant":"blue","value":true}`},
		{"typed-boolean", free, `{"reason":"UNKNOWN","variant":"false"}`},
		{"typed-string", pro, `{"variant":"blue","value":"hi"}`},
		{"typed-integer", pro, `{"variant":"blue","value":10}`},
		{"typed-float", pro, `{"variant":"blue","value":1.0}`},
		{"typed-object", pro, `{"variant":"blue","value":{"x":1}}`},
		{"mixed", pro, `{"variant":"blue","value":"blue","metadata":{"type":"string","payload":"7"}}`},
		{"company", pro, `{"reason":"UNKNOWN","value":false}`},
		{"company", `{"context":{"targetingKey":"u","groups":{"company":"a"}}}`, `{"reason":"TARGETING_MATCH","value":true}`},
		{"seats", `{"context":{"targetingKey":"u","groups":{"company":7},"groupProperties":{"company":{"plan":"big"}}}}`, `{"value":true}`},
		{"seats", `{"context":{"targetingKey":"u","groups":{"company":7},"group_properties":{"company":{"plan":"big"}}}}`, `{"value":true}`},
		{"empty", pro, `{"reason":"STATIC","value":false}`},
		{"held", pro, `{"reason":"SPLIT","variant":"holdout-7","value":false}`},
		{"enrolled", `{"context":{"targetingKey":"u","$feature_enrollment/enrolled":true}}`, `{"reason":"TARGETING_MATCH","value":true}`},
		{"inactive", pro, `{"reason":"DISABLED","variant":"false","value":false}`},
		{"inactive-string", pro, `{"reason":"DISABLED","variant":"false"}`},
		{"a%2F%C3%BC%20", pro, `{"key":"a/ü ","value":true}`},
	} {
		a := ask(t, base+pathFlags+"/"+c.key, c.body)
		if a.status != 200 {
			t.Errorf("%s %s: %d %s", c.key, c.body, a.status, a.text)
			continue
		}
		var want map[string]any
		d := json.NewDecoder(strings.NewReader(c.want))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if !contains(a.body, want) {
			t.Errorf("%s %s:\n got %s\nwant %s", c.key, c.body, a.text, c.want)
		}
		if _, has := want["value"]; !has && c.key != "half" && c.key != "string" && a.body["value"] != nil {
			t.Errorf("%s %s: got the value %v, want none", c.key, c.body, a.body["value"])
		}
		checkSuccess(t, a.body)
	}
}

// contains reports whether got has all of want.
func contains(got, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		return bytes.Equal(a, b)
	}
	g, ok := got.(map[string]any)
	for name, v := range w {
		ok = ok && contains(g[name], v)
	}
	return ok
}

func TestErrors(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(), people{})
	good := `{"context":{"targetingKey":"u"}}`
	key := []string{"X-API-Key", "phc_test"}
	for _, c := range []struct {
		name, path, body string
		header           []string
		status           int
		code             string
	}{
		{"not JSON", "", `{`, key, 400, "PARSE_ERROR"},
		{"empty", "", ``, key, 400, "PARSE_ERROR"},
		{"a list", "", `[]`, key, 400, "PARSE_ERROR"},
		{"no context", "", `{}`, key, 400, "INVALID_CONTEXT"},
		{"the context is a text", "", `{"context":"u"}`, key, 400, "INVALID_CONTEXT"},
		{"no targeting key", "", `{"context":{}}`, key, 400, "TARGETING_KEY_MISSING"},
		{"an empty targeting key", "", `{"context":{"targetingKey":""}}`, key, 400, "TARGETING_KEY_MISSING"},
		{"a null targeting key", "", `{"context":{"targetingKey":null}}`, key, 400, "TARGETING_KEY_MISSING"},
		{"a number as targeting key", "", `{"context":{"targetingKey":7}}`, key, 400, "INVALID_CONTEXT"},
		{"groups without keys", "", `{"context":{"targetingKey":"u","groups":{"company":{}}}}`, key, 400, "INVALID_CONTEXT"},
		{"no such flag", "/unknown", good, key, 404, "FLAG_NOT_FOUND"},
		{"a broken flag", "/broken", good, key, 400, "PARSE_ERROR"},
		{"too large", "", `{"context":{"targetingKey":"` + strings.Repeat("x", 2<<20) + `"}}`, key, 413, "GENERAL"},
		{"no key", "", good, []string{"X-Other", "1"}, 401, ""},
		{"unknown key", "", good, []string{"Authorization", "Bearer phc_other"}, 401, ""},
		{"both headers: Authorization decides", "", good, []string{"Authorization", "Bearer phc_other", "X-API-Key", "phc_test"}, 401, ""},
	} {
		paths := []string{pathFlags + c.path}
		if c.path == "" {
			paths = append(paths, pathFlags+"/static")
		}
		for _, path := range paths {
			a := ask(t, base+path, c.body, c.header...)
			if a.status != c.status {
				t.Errorf("%s: %s: got %d %s, want %d", c.name, path, a.status, a.text, c.status)
			}
			if c.code == "" {
				if a.text != "" || a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: got %q and %v, want no body", c.name, a.text, a.header)
				}
				continue
			}
			if details, _ := a.body["errorDetails"].(string); a.body["errorCode"] != c.code || details == "" {
				t.Errorf("%s: %s: got %s, want %s", c.name, path, a.text, c.code)
			}
			if path != pathFlags && a.body["key"] == nil {
				t.Errorf("%s: the error has no key: %s", c.name, a.text)
			}
		}
	}
}

// A flag that needs data that cannot be read is an error of the server, and a
// failure inside of the answer for all flags.
func TestStoredProperties(t *testing.T) {
	t.Parallel()
	body := `{"context":{"targetingKey":"u"}}`
	base := serve(t, sample(), people{properties: `{"plan":"pro"}`})
	if a := ask(t, base+pathFlags+"/targeted", body); a.body["value"] != true {
		t.Errorf("stored property: %s", a.text)
	}
	if a := ask(t, base+pathFlags+"/targeted", `{"context":{"targetingKey":"u","plan":"free"}}`); a.body["value"] != false {
		t.Errorf("a given property precedes the stored one: %s", a.text)
	}
	base = serve(t, sample(), people{err: errors.New("the disk is gone")})
	a := ask(t, base+pathFlags+"/targeted", body)
	if a.status != 500 || a.body["errorCode"] != "GENERAL" || a.body["errorDetails"] == nil || a.body["key"] != "targeted" {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if a := ask(t, base+pathFlags, body); a.status != 200 || flagsOf(a)["targeted"]["errorCode"] != "GENERAL" || flagsOf(a)["static"]["value"] != true {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

func flagsOf(a answer) map[string]map[string]any {
	out := map[string]map[string]any{}
	list, _ := a.body["flags"].([]any)
	for _, item := range list {
		f, _ := item.(map[string]any)
		key, _ := f["key"].(string)
		out[key] = f
	}
	return out
}

func TestBulkListsEveryFlag(t *testing.T) {
	t.Parallel()
	s := sample()
	base := serve(t, s, people{})
	a := ask(t, base+pathFlags, `{"context":{"targetingKey":"u"}}`)
	got := flagsOf(a)
	if a.status != 200 || len(got) != len(s.stored.Flags) {
		t.Fatalf("%d flags of %d: %s", len(got), len(s.stored.Flags), a.text)
	}
	for key, f := range got {
		if f["errorCode"] != nil {
			if key != "broken" || f["errorCode"] != "PARSE_ERROR" || f["errorDetails"] == "" {
				t.Errorf("got %v", f)
			}
			continue
		}
		checkSuccess(t, f)
	}
}

// checkSuccess checks a success against the contract of the protocol. The
// published schema cannot: its oneOf matches more than one type.
func checkSuccess(t *testing.T, f map[string]any) {
	t.Helper()
	key, hasKey := f["key"].(string)
	if variant, ok := f["variant"].(string); !hasKey || !ok || variant == "" {
		t.Errorf("%s: no key or variant: %v", key, f)
	}
	switch f["reason"] {
	case "STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN":
	default:
		t.Errorf("%s: the reason %v", key, f["reason"])
	}
	value, has := f["value"]
	switch value.(type) {
	case bool, string, json.Number, map[string]any:
	default:
		if has {
			t.Errorf("%s: the value %v", key, value)
		}
	}
	metadata, _ := f["metadata"].(map[string]any)
	for name, v := range metadata {
		switch v.(type) {
		case bool, string, json.Number:
		default:
			t.Errorf("%s: metadata %s is %v", key, name, v)
		}
	}
	for name := range f {
		switch name {
		case "key", "reason", "variant", "value", "metadata":
		default:
			t.Errorf("%s: unknown member %s", key, name)
		}
	}
}

func TestBulkETag(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(), people{})
	url, key := base+pathFlags, "phc_test"
	first := ask(t, url, `{"context":{"targetingKey":"u"}}`)
	tag := first.header.Get("ETag")
	if tag == "" {
		t.Fatal("no ETag")
	}
	for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*", strings.Trim(tag, `"`)} {
		a := ask(t, url, `{"context":{"targetingKey":"u"}}`, "X-API-Key", key, "If-None-Match", header)
		if a.status != 304 || a.text != "" || a.header.Get("ETag") != tag {
			t.Errorf("%s: got %d %q %s", header, a.status, a.text, a.header.Get("ETag"))
		}
	}
	a := ask(t, url, `{"context":{"targetingKey":"u","plan":"pro"}}`, "X-API-Key", key, "If-None-Match", tag)
	if a.status != 200 || a.header.Get("ETag") == tag {
		t.Errorf("another answer: got %d %s", a.status, a.header.Get("ETag"))
	}
	a = ask(t, url, `{"context":{"targetingKey":"u","unused":1}}`, "X-API-Key", key, "If-None-Match", tag)
	if a.status != 304 {
		t.Errorf("the same answer for another context: got %d", a.status)
	}
}

// Flags for servers are not in answers to browsers, and flags bucketed by device
// need the id of one.
func TestRuntimeContextsAndDevice(t *testing.T) {
	t.Parallel()
	s := sample()
	define := func(id int64, key string, change func(*eval.Definition)) {
		d := flagstest.Define(id, key, `{"groups":[`+flagstest.Everyone+`]}`)
		change(&d)
		s.stored.Flags = append(s.stored.Flags, d)
	}
	define(30, "server", func(d *eval.Definition) { d.Runtime = eval.ServerRuntime })
	define(31, "client", func(d *eval.Definition) { d.Runtime = eval.ClientRuntime })
	define(32, "docs", func(d *eval.Definition) { d.Contexts = []string{"docs"} })
	define(33, "device", func(d *eval.Definition) { d.ByDevice = true })
	base := serve(t, s, people{})
	for _, c := range []struct {
		name, body, agent string
		bulk, single      string // the flags of both paths
	}{
		{"a browser", `{"context":{"targetingKey":"u"}}`, "Mozilla/5.0", "client,docs", "client,docs"},
		{"a server library", `{"context":{"targetingKey":"u"}}`, "python-requests/2", "docs,server", "docs,server"},
		{"not recognized", `{"context":{"targetingKey":"u"}}`, "Java-http-client/17", "client,docs", "docs,server"},
		{"a given runtime", `{"context":{"targetingKey":"u","evaluation_runtime":"server"}}`, "Mozilla/5.0", "docs,server", "docs,server"},
		{"another context", `{"context":{"targetingKey":"u","evaluation_contexts":["app"]}}`, "Mozilla/5.0", "client", "client"},
	} {
		header := []string{"X-API-Key", "phc_test", "User-Agent", c.agent}
		var bulk, single []string
		all := flagsOf(ask(t, base+pathFlags, c.body, header...))
		for _, key := range []string{"client", "docs", "server"} {
			if all[key] != nil {
				bulk = append(bulk, key)
			}
			if ask(t, base+pathFlags+"/"+key, c.body, header...).status == 200 {
				single = append(single, key)
			}
		}
		if strings.Join(bulk, ",") != c.bulk || strings.Join(single, ",") != c.single {
			t.Errorf("%s: got %v and %v, want %s and %s", c.name, bulk, single, c.bulk, c.single)
		}
	}
	for body, want := range map[string]any{
		`{"context":{"targetingKey":"u"}}`:                  false,
		`{"context":{"targetingKey":"u","$device_id":"d"}}`: true,
		`{"context":{"targetingKey":"u","device_id":"d"}}`:  true,
	} {
		if a := ask(t, base+pathFlags+"/device", body); a.body["value"] != want {
			t.Errorf("%s: got %s, want %v", body, a.text, want)
		}
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(), people{})
	a := ask(t, base+pathFlags, `{"context":{"targetingKey":"u"}}`, "X-API-Key", "phc_test", "Origin", "https://app.example.com")
	if a.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "ETag") {
		t.Errorf("got %v", a.header)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, base+pathFlags, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://app.example.com")
	req.Header.Set("Access-Control-Request-Method", "POST")
	req.Header.Set("Access-Control-Request-Headers", "authorization,content-type,if-none-match,x-api-key")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	allowed := strings.ToLower(res.Header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"authorization", "content-type", "if-none-match", "x-api-key"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("%s is not among %q", name, allowed)
		}
	}
}
