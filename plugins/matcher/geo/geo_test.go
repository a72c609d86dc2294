package geo_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins/matcher/geo"
	"github.com/guidonhq/guidon/sdk"
)

func program(t testing.TB, operator, value string) sdk.Program {
	t.Helper()
	p, err := geo.Matcher{}.Compile(operator, json.RawMessage(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return p
}

func TestAreas(t *testing.T) {
	t.Parallel()
	const (
		triangle = `{"points":[{"lat":47,"lng":5},{"lat":47,"lng":15},{"lat":55,"lng":10}]}`
		fiji     = `{"points":[{"lat":-20,"lng":176},{"lat":-20,"lng":-178},{"lat":-15,"lng":-178},{"lat":-15,"lng":176}]}`
		u        = `{"points":[{"lat":0,"lng":0},{"lat":0,"lng":9},{"lat":9,"lng":9},{"lat":9,"lng":6},{"lat":3,"lng":6},{"lat":3,"lng":3},{"lat":9,"lng":3},{"lat":9,"lng":0}]}`
	)
	for _, tt := range []struct {
		name, operator, value, property string
		in                              bool
	}{
		{"Berlin to Paris is 878 km", "geo/near", `{"lat":52.52,"lng":13.405,"km":880}`, `"48.8566,2.3522"`, true},
		{"and not 876", "geo/near", `{"lat":52.52,"lng":13.405,"km":876}`, `"48.8566,2.3522"`, false},
		{"a place is near itself", "geo/near", `{"lat":52.52,"lng":13.405,"km":0.001}`, `"52.52,13.405"`, true},
		{"eleven metres", "geo/near", `{"lat":0,"lng":0,"km":0.012}`, `"0.0001,0"`, true},
		{"across the 180th meridian", "geo/near", `{"lat":0,"lng":179.9,"km":30}`, `"0,-179.9"`, true},
		{"over the pole", "geo/near", `{"lat":89.9,"lng":0,"km":30}`, `"89.9,180"`, true},
		{"the other side of the earth", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `"0,180"`, true},
		{"in a box", "geo/in_box", `{"south":47,"west":5,"north":55,"east":15}`, `"52.52,13.41"`, true},
		{"its edge is in it", "geo/in_box", `{"south":47,"west":5,"north":55,"east":15}`, `"47,15"`, true},
		{"north of it", "geo/in_box", `{"south":47,"west":5,"north":55,"east":15}`, `"55.1,10"`, false},
		{"a box across the 180th meridian, west of it", "geo/in_box", `{"south":-20,"west":176,"north":-15,"east":-178}`, `"-18,178"`, true},
		{"and east of it", "geo/in_box", `{"south":-20,"west":176,"north":-15,"east":-178}`, `"-18,-179"`, true},
		{"and not the rest of the world", "geo/in_box", `{"south":-20,"west":176,"north":-15,"east":-178}`, `"-18,0"`, false},
		{"in a triangle", "geo/in_polygon", triangle, `"49,10"`, true},
		{"beside it", "geo/in_polygon", triangle, `"54,6"`, false},
		{"north of it", "geo/in_polygon", triangle, `"60,10"`, false},
		{"in an arm of a U", "geo/in_polygon", u, `"8,1"`, true},
		{"between its arms", "geo/in_polygon", u, `"8,4.5"`, false},
		{"a polygon across the 180th meridian, west of it", "geo/in_polygon", fiji, `"-18,178"`, true},
		{"and east of it", "geo/in_polygon", fiji, `"-18,-179"`, true},
		{"and nowhere else", "geo/in_polygon", fiji, `"-18,0"`, false},
		{"an object", "geo/near", `{"lat":1,"lng":2,"km":1}`, `{"lat":1,"lng":2}`, true},
		{"with long names", "geo/near", `{"lat":1,"lng":2,"km":1}`, `{"latitude":1,"longitude":2}`, true},
		{"numbers as texts", "geo/near", `{"lat":1,"lng":2,"km":1}`, `{"lat":"1","lng":" 2"}`, true},
		{"a text with a blank", "geo/near", `{"lat":1,"lng":2,"km":1}`, `"1, 2"`, true},
		{"half a point", "geo/near", `{"lat":0,"lng":0,"km":1}`, `{"lat":0}`, false},
		{"no point", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `"here"`, false},
		{"numbers that are no place", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `"91,0"`, false},
		{"nor infinity", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `"NaN,Inf"`, false},
		{"null", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `null`, false},
		{"a list", "geo/near", `{"lat":0,"lng":0,"km":20100}`, `[0,0]`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := program(t, tt.operator, tt.value).Match(&sdk.Input{Value: json.RawMessage(tt.property)}); got != sdk.Matches(tt.in) {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestPointsOfTwoProperties(t *testing.T) {
	t.Parallel()
	p := program(t, "geo/near", `{"lat":1,"lng":2,"km":1,"of":["$geoip_latitude","$geoip_longitude"]}`)
	if r, ok := p.(sdk.Reader); !ok || !slices.Equal(r.Reads(), []string{"$geoip_latitude", "$geoip_longitude"}) {
		t.Fatalf("%+v", p)
	}
	for property, want := range map[string]bool{
		`{"$geoip_latitude":1,"$geoip_longitude":2}`: true, `{"$geoip_latitude":1}`: false, `{}`: false,
		`{"$geoip_latitude":2,"$geoip_longitude":1}`: false,
	} {
		if got := p.Match(&sdk.Input{Value: json.RawMessage(property)}); got != sdk.Matches(want) {
			t.Errorf("%s: %s", property, got)
		}
	}
}

func TestAreasThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operator, value, pointer, says string }{
		{"geo/in_box", `{"south":55,"west":5,"north":47,"east":15}`, "/north", "south of south"},
		{"geo/in_polygon", `{"points":[{"lat":1,"lng":2}]}`, "/points", "three corners"},
		{"geo/in_polygon", `{"points":[{"lat":1,"lng":2},{"lat":91,"lng":2},{"lat":1,"lng":3}]}`, "/points/1", "not on the earth"},
		{"geo/near", `{"lat":1,"lon":2,"km":1}`, "", "unknown field"},
	} {
		_, err := geo.Matcher{}.Compile(tt.operator, json.RawMessage(tt.value))
		if e := sdk.AsError(err); e == nil || e.Pointer != tt.pointer || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %+v", tt.value, e)
		}
	}
}

func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	for _, o := range (geo.Matcher{}).Operators() {
		if !json.Valid(o.ValueSchema) {
			t.Errorf("%s: the schema is not JSON", o.ID)
		}
		for _, e := range o.Examples {
			if got := program(t, o.ID, string(e.Value)).Match(&sdk.Input{Value: e.Property}); got != e.Result {
				t.Errorf("%s %s %s: %s", o.ID, e.Value, e.Property, got)
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(`{"points":[{"lat":0,"lng":170},{"lat":0,"lng":-170},{"lat":9,"lng":180}]}`, `"1,179"`)
	f.Fuzz(func(t *testing.T, value, property string) {
		p, err := geo.Matcher{}.Compile("geo/in_polygon", json.RawMessage(value))
		if err == nil && json.Valid([]byte(property)) {
			if v := p.Match(&sdk.Input{Value: json.RawMessage(property)}); v != sdk.Match && v != sdk.NoMatch {
				t.Errorf("%s", v)
			}
		}
	})
}
