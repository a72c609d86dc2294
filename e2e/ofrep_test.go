//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"
)

// The flags and scenarios below are equivalent to those that OpenFeature tests its
// SDKs with (evaluation.feature and test-flags.json of the specification): one flag
// of each type, flags whose value is the zero of their type, a flag that looks at the
// context, a missing flag and a wrong type. Values are the payloads of variants.

// variants returns filters of a flag whose variant first is for everyone, and second
// for those who match property = value.
func variants(first, firstValue, second, secondValue, property, value string) string {
	groups := `{"properties":[],"rollout_percentage":100,"variant":"` + first + `"}`
	if property != "" {
		groups = fmt.Sprintf(`{"properties":[{"key":%q,"type":"person","operator":"exact","value":%q}],"rollout_percentage":100,"variant":%q},`, property, value, second) + groups
	}
	payloads, _ := json.Marshal(map[string]string{first: firstValue, second: secondValue})
	return fmt.Sprintf(`{"groups":[%s],"multivariate":{"variants":[{"key":%q,"rollout_percentage":100},{"key":%q,"rollout_percentage":0}]},"payloads":%s}`,
		groups, first, second, payloads)
}

const pictures = `{"showImages":true,"title":"Check out these pics!","imagesPerPage":100}`

var ofrepFlags = []flag{
	{key: "boolean-flag", filters: variants("on", "true", "off", "false", "", "")},
	{key: "string-flag", filters: variants("greeting", `"hi"`, "parting", `"bye"`, "", "")},
	{key: "integer-flag", filters: variants("ten", "10", "one", "1", "", "")},
	{key: "float-flag", filters: variants("half", "0.5", "tenth", "0.1", "", "")},
	{key: "object-flag", filters: variants("template", pictures, "empty", "{}", "", "")},
	{key: "context-aware", filters: variants("external", `"EXTERNAL"`, "internal", `"INTERNAL"`, "customer", "false")},
	{key: "wrong-flag", filters: variants("one", `"uno"`, "two", `"dos"`, "", "")},
	{key: "boolean-zero-flag", filters: variants("zero", "false", "non-zero", "true", "", "")},
	{key: "string-zero-flag", filters: variants("zero", `""`, "non-zero", `"str"`, "", "")},
	{key: "integer-zero-flag", filters: variants("zero", "0", "non-zero", "1", "", "")},
	{key: "float-zero-flag", filters: variants("zero", "0.0", "non-zero", "1.0", "", "")},
	{key: "object-zero-flag", filters: variants("zero", "{}", "non-zero", pictures, "", "")},
	{key: "boolean-targeted-zero-flag", filters: variants("non-zero", "true", "zero", "false", "email", "ballmer@macrosoft.com")},
	{key: "string-targeted-zero-flag", filters: variants("non-zero", `"str"`, "zero", `""`, "email", "ballmer@macrosoft.com")},
	{key: "integer-targeted-zero-flag", filters: variants("non-zero", "1", "zero", "0", "email", "ballmer@macrosoft.com")},
	{key: "float-targeted-zero-flag", filters: variants("non-zero", "1.0", "zero", "0.0", "email", "ballmer@macrosoft.com")},
	{key: "plain-flag", filters: `{"groups":[{"properties":[],"rollout_percentage":100}]}`},
	{key: "off-flag", filters: `{"groups":[{"properties":[],"rollout_percentage":0}]}`},
}

// scenario is one evaluation: the value, variant and reason, or the error code.
type scenario struct {
	Key     string         `json:"key"`
	Type    string         `json:"type"`
	Default any            `json:"default"`
	Context map[string]any `json:"context"`

	value           any
	variant, reason string
	code            string
}

var (
	ada     = map[string]any{"targetingKey": "ada"}
	known   = map[string]any{"targetingKey": "ada", "fn": "Sulisław", "ln": "Świętopełk", "age": 29.0, "customer": "false"}
	ballmer = map[string]any{"targetingKey": "ada", "email": "ballmer@macrosoft.com"}
)

var scenarios = []scenario{
	{"boolean-flag", "boolean", false, ada, true, "on", "STATIC", ""},
	{"string-flag", "string", "bye", ada, "hi", "greeting", "STATIC", ""},
	{"integer-flag", "integer", 1, ada, 10.0, "ten", "STATIC", ""},
	{"float-flag", "float", 0.1, ada, 0.5, "half", "STATIC", ""},
	{"object-flag", "object", map[string]any{}, ada, map[string]any{"showImages": true, "title": "Check out these pics!", "imagesPerPage": 100.0}, "template", "STATIC", ""},
	{"context-aware", "string", "none", known, "INTERNAL", "internal", "TARGETING_MATCH", ""},
	{"context-aware", "string", "none", ada, "EXTERNAL", "external", "TARGETING_MATCH", ""},
	{"missing-flag", "string", "uh-oh", ada, nil, "", "", "FLAG_NOT_FOUND"},
	{"wrong-flag", "integer", 13, ada, nil, "", "", "TYPE_MISMATCH"},
	{"boolean-zero-flag", "boolean", true, ada, false, "zero", "STATIC", ""},
	{"string-zero-flag", "string", "hi", ada, "", "zero", "STATIC", ""},
	{"integer-zero-flag", "integer", 1, ada, 0.0, "zero", "STATIC", ""},
	{"float-zero-flag", "float", 0.1, ada, 0.0, "zero", "STATIC", ""},
	{"object-zero-flag", "object", map[string]any{"a": 1}, ada, map[string]any{}, "zero", "STATIC", ""},
	{"boolean-targeted-zero-flag", "boolean", true, ballmer, false, "zero", "TARGETING_MATCH", ""},
	{"string-targeted-zero-flag", "string", "hi", ballmer, "", "zero", "TARGETING_MATCH", ""},
	{"integer-targeted-zero-flag", "integer", 1, ballmer, 0.0, "zero", "TARGETING_MATCH", ""},
	{"float-targeted-zero-flag", "float", 0.1, ballmer, 0.0, "zero", "TARGETING_MATCH", ""},
	{"integer-targeted-zero-flag", "integer", 13, ada, 1.0, "non-zero", "TARGETING_MATCH", ""},
	{"plain-flag", "boolean", false, ada, true, "true", "STATIC", ""},
	{"off-flag", "boolean", true, ada, false, "false", "SPLIT", ""},
}

// resolution is the answer of a provider for one scenario.
type resolution struct {
	Value   any    `json:"value"`
	Variant string `json:"variant"`
	Reason  string `json:"reason"`
	Code    string `json:"code"`
}

// TestOFREP asks the flags of the OpenFeature suite over OFREP with each provider.
func TestOFREP(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, f := range ofrepFlags {
		s.create(t, f)
	}
	providers := []struct {
		name, dir string
		reasons   bool              // the provider passes the reason on
		codes     map[string]string // the codes that it answers instead of others
		command   []string
	}{
		{"openfeature-provider-ofrep 0.3.0 (Python)", "openfeature-python", true, nil, []string{"venv/bin/python", "ofrep.py"}},
		{"ofrep-core 2.3.0 (JavaScript)", "browser", true, nil, []string{"node", "ofrep-core.mjs"}},
		{"ofrep 0.0.2 (Java)", "java", true, nil, []string{"java", "-cp", "lib/*", "Ofrep.java"}},
		{"open-feature-ofrep 0.1.2 (Rust)", "rust", false, map[string]string{"TYPE_MISMATCH": "PARSE_ERROR"}, []string{"target/debug/ofrep"}},
		{"ofrep-web-provider 0.4.3 in Chromium", "browser", true, nil, []string{"node", "ofrep-web.mjs", "scenarios"}},
	}
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			var got []resolution
			script(t, install(t, p.dir), s.task(map[string]any{"scenarios": scenarios}), &got, p.command...)
			if len(got) != len(scenarios) {
				t.Fatalf("%d results of %d scenarios", len(got), len(scenarios))
			}
			for i, want := range scenarios {
				code := want.code
				if other, ok := p.codes[code]; ok {
					code = other
				}
				switch g := got[i]; {
				case code != "" && g.Code != code, code == "" && g.Code != "":
					t.Errorf("%s: error code %q, want %q", want.Key, g.Code, code)
				case code != "":
				case !reflect.DeepEqual(g.Value, want.value) || g.Variant != want.variant || p.reasons && g.Reason != want.reason:
					t.Errorf("%s: got %v, variant %q, reason %s; want %v, %q, %s", want.Key, g.Value, g.Variant, g.Reason, want.value, want.variant, want.reason)
				}
			}
		})
	}
}

// TestOFREPStream changes a flag while a page with the web provider is open: the
// event stream tells the provider, which fetches the flags again.
func TestOFREPStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(t, flag{key: "plain-flag", filters: `{"groups":[{"properties":[],"rollout_percentage":0}]}`})
	var got struct {
		Before, After any
		Streams       []string
		Failures      []string
	}
	script(t, install(t, "browser"), s.task(map[string]any{
		"change": map[string]any{
			"method": http.MethodPatch, "path": "/api/projects/1/feature_flags/1/",
			"body": map[string]any{"filters": json.RawMessage(`{"groups":[{"properties":[],"rollout_percentage":100}]}`)},
		},
	}), &got, "node", "ofrep-web.mjs", "stream")
	if got.Before != false || got.After != true {
		t.Errorf("before the change %v, after it %v", got.Before, got.After)
	}
	if len(got.Streams) == 0 || len(got.Failures) > 0 {
		t.Errorf("streams %q, failures %q", got.Streams, got.Failures)
	}
}
