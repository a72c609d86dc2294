package properties

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unicode/utf8"
)

func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b" : [ { } , "]" ] } `, `{"a":"\"}","b":{"c":"{"}}`, `{"\u0061":1,"a":2}`, `{"a"`, `{"a":}`,
		`{"a":1,}`, `[1]`, `{"a":tru`, `{"a":"\`, `{"":{"":[]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, ok := Parse(s)
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &want) != nil || want == nil {
			return // invalid JSON must not panic
		}
		if !utf8.ValidString(s) {
			return // ingestion sanitizes text first; invalid UTF-8 must not panic
		}
		if !ok || len(o.Members) != len(want) {
			t.Fatalf("%s: read %v of %v, ok %v", s, o.Members, want, ok)
		}
		for key, val := range want {
			if got := o.Get(key); got != string(val) {
				t.Fatalf("%s: %q is %s, want %s", s, key, got, val)
			}
		}
		var back map[string]json.RawMessage
		if err := json.Unmarshal([]byte(o.JSON()), &back); err != nil || len(back) != len(want) {
			t.Fatalf("%s became %s: %v", s, o.JSON(), err)
		}
	})
}

// An Object behaves like a map at every size, with and without its index.
func TestObjectIsAMap(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	var o Object
	want := map[string]string{}
	for range 5000 {
		key, val := fmt.Sprint("k", rnd.IntN(100)), fmt.Sprint(rnd.IntN(3))
		switch rnd.IntN(3) {
		case 0, 1:
			if o.Set(key, val) != (want[key] != val) {
				t.Fatalf("Set(%s) reported the wrong change", key)
			}
			want[key] = val
		case 2:
			o.Remove(key, "never there")
			delete(want, key)
		}
		if o.Has(key) != (want[key] != "") || o.Get(key) != want[key] {
			t.Fatalf("%s is %q, want %q", key, o.Get(key), want[key])
		}
		if rnd.IntN(500) == 0 {
			o = o.Clone()
		}
	}
	got := map[string]string{}
	for _, m := range o.Members {
		got[m.Key] = m.Value
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
