package persons

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
		o, ok := parseObject(s)
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &want) != nil || want == nil {
			return // what is no JSON must only not break anything
		}
		if !utf8.ValidString(s) {
			return // ingestion mends text before it comes here; only a crash would count
		}
		if !ok || len(o.members) != len(want) {
			t.Fatalf("%s: read %v of %v, ok %v", s, o.members, want, ok)
		}
		for key, val := range want {
			if got := o.get(key); got != string(val) {
				t.Fatalf("%s: %q is %s, want %s", s, key, got, val)
			}
		}
		var back map[string]json.RawMessage
		if err := json.Unmarshal([]byte(o.text()), &back); err != nil || len(back) != len(want) {
			t.Fatalf("%s became %s: %v", s, o.text(), err)
		}
	})
}

// An object must behave like a map whatever its size: the index comes and goes.
func TestObjectIsAMap(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	var o object
	want := map[string]string{}
	for range 5000 {
		key, val := fmt.Sprint("k", rnd.IntN(100)), fmt.Sprint(rnd.IntN(3))
		switch rnd.IntN(3) {
		case 0, 1:
			if o.set(key, val) != (want[key] != val) {
				t.Fatalf("set %s: told the wrong thing", key)
			}
			want[key] = val
		case 2:
			o.remove(key, "never there")
			delete(want, key)
		}
		if o.has(key) != (want[key] != "") || o.get(key) != want[key] {
			t.Fatalf("%s is %q, want %q", key, o.get(key), want[key])
		}
		if rnd.IntN(500) == 0 {
			o = o.clone()
		}
	}
	got := map[string]string{}
	for _, m := range o.members {
		got[m.key] = m.val
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestIllegal(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"": true, "  ": true, "anonymous": true, "ANONYMOUS": true, `"guest"`: true, "'Null'": false, "'null'": true,
		"null": true, "None": true, "none": true, "NONE": false, "0": true, "00": false, "NaN": true, "Nan": false,
		"[object Object]": true, "00000000-0000-0000-0000-000000000000": true, " undefined ": true, "True": true,
		"alice": false, "id": true, "ids": false, `"alice"`: false, "'": false,
	} {
		if got := illegal(id); got != want {
			t.Errorf("illegal(%q) is %v", id, got)
		}
	}
}
