package location_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/geoip/location"
)

func TestCompactFormKeepsKnownValues(t *testing.T) {
	v := location.Values{0: `"Zürich"`, 2: `"CH"`, 6: "47.36667", 15: `"last"`}
	compact := v.Append(nil)
	const want = `{"$geoip_city_name":"Zürich","$geoip_country_code":"CH","$geoip_latitude":47.36667,"$geoip_subdivision_3_name":"last"}`
	if got := string(location.AppendObject(nil, compact)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got := string(location.AppendMembers(nil, compact, func(name string) bool { return name != "$geoip_latitude" }))
	if got != `"$geoip_latitude":47.36667,` {
		t.Errorf("got %s", got)
	}
}

func TestNothingKnownIsNothing(t *testing.T) {
	if got := (&location.Values{}).Append(nil); len(got) != 0 {
		t.Errorf("got %x", got)
	}
	if got := string(location.AppendObject(nil, nil)); got != "{}" {
		t.Errorf("got %s", got)
	}
	long := location.Values{0: `"` + strings.Repeat("x", 300) + `"`, 1: `"kept"`}
	if got := string(location.AppendObject(nil, long.Append(nil))); got != `{"$geoip_country_name":"kept"}` {
		t.Errorf("got %s", got)
	}
}

func TestLocationProperties(t *testing.T) {
	for name, want := range map[string]bool{"$geoip_city_name": true, "$geoip_city_confidence": true, "$geoip_disable": false, "geoip": false} {
		if location.Is(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A record that is cut short, or of a later version, is read as far as it goes.
func FuzzEach(f *testing.F) {
	f.Add((&location.Values{0: `"a"`, 15: "1"}).Append(nil))
	f.Add([]byte{3, '1'})
	f.Fuzz(func(t *testing.T, compact []byte) {
		n := 0
		location.Each(compact, func(name string, value []byte) {
			n++
			if !location.Is(name) || len(value) == 0 {
				t.Errorf("%s: %q", name, value)
			}
		})
		if n > len(location.Names) {
			t.Errorf("%d values", n)
		}
	})
}

func TestObjectIsJSON(t *testing.T) {
	var v location.Values
	for i := range v {
		v[i] = `"x"`
	}
	if got := location.AppendObject(nil, v.Append(nil)); !json.Valid(got) {
		t.Errorf("%s", got)
	}
}
