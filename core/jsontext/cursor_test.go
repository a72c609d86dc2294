package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/jsontext"
)

// FuzzCursor compares the cursor with encoding/json: it finds the same names in
// valid objects, and ends on any text.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, ` { "a" : "b\"c" , "d":[1,{"e":"]"}] ,"f":{"g":"}"}} `, `{"\u0061\\":null,"":true}`, `[1]`, `{"a"`, `{"a":`, `{"a\`, `{"a":"\`, `"`, ``,
		`{"a":1}}`, `{"a" 1}`, `{,,}`, `{"a":,}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		for c, _ := jsontext.OpenObject(string(data)); c.Next(); {
			got[c.Key] = c.Value
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil || !json.Valid(data) {
			return
		}
		// The standard reader changes names that are not UTF-8; ingestion lets
		// none of those through.
		for name := range want {
			if _, ok := got[name]; !ok && !strings.ContainsRune(name, '\uFFFD') {
				t.Errorf("%q is missing in %q", name, got)
			}
		}
		for name, value := range got {
			if !json.Valid([]byte(value)) {
				t.Errorf("%q has the value %q", name, value)
			}
		}
	})
}
