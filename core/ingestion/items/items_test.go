package items_test

import (
	"encoding/json"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/items"
	"github.com/guidonhq/guidon/core/jsontext"
)

func TestEdit(t *testing.T) {
	edit := func(it *items.Item) {
		if it.Properties().Get("$ip") != nil {
			it.Properties().Set("x", []byte(`"y"`))
			it.Properties().Remove("$ip")
			it.Fields().Set("distinct_id", []byte(`"z"`))
		}
	}
	for in, want := range map[string]string{
		`{"a": 1}`:                   `{"a": 1}`,
		`[{"a": 1} , null,7, []]`:    `[{"a": 1},null,7,[]]`,
		`[]`:                         `[]`,
		`{"properties":[1],"$ip":1}`: `{"properties":[1],"$ip":1}`,
		`{"properties":{"$ip":1}}`:   `{"properties":{"x":"y"},"distinct_id":"z"}`,
		`{"e":NaN,"properties" : {"$ip":1,"b" : [ 1 ],"x":0,"$ip":2},"distinct_id":"u"}`: `{"e":NaN,"distinct_id":"z","properties":{"b":[ 1 ],"x":"y"}}`,
		`{"properties":{"\u0024ip":1,"caf\u00e9":"\ud83d"}}`:                             `{"properties":{"caf\u00e9":"\ud83d","x":"y"},"distinct_id":"z"}`,
	} {
		got := string(items.Edit(nil, []byte(in), edit))
		if !equal(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// equal compares texts, and the members of an object in any order.
func equal(a, b string) bool { return a == b || jsontext.Equal([]byte(a), []byte(b)) }

func FuzzEdit(f *testing.F) {
	f.Add([]byte(`[{"properties":{"$ip":"1","a":{"b":[1,2]}},"c":NaN}, 5]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s jsontext.Scanner
		if s.Reset(text); !s.Check() {
			return
		}
		same := items.Edit(nil, text, func(*items.Item) {})
		changed := items.Edit(nil, text, func(it *items.Item) {
			it.Properties().Set("$x", []byte("1"))
			it.Fields().Remove("distinct_id")
		})
		for _, out := range [][]byte{same, changed} {
			if s.Reset(out); !s.Check() {
				t.Fatalf("not valid: %q of %q", out, text)
			}
		}
		if json.Valid(text) && !json.Valid(changed) {
			t.Fatalf("not JSON: %q of %q", changed, text)
		}
	})
}
