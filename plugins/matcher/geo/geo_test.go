package geo_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins/matcher/geo"
	"github.com/guidonhq/guidon/sdk"
)

func program(t testing.TB, operator, value string) sdk.Program {
	t.Helper()
	p, err := geo.New().Compile(operator, json.RawMessage(value))
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
		_, err := geo.New().Compile(tt.operator, json.RawMessage(tt.value))
		if e := sdk.AsError(err); e == nil || e.Pointer != tt.pointer || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %+v", tt.value, e)
		}
	}
}

func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	for _, o := range geo.New().Operators() {
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

// borders are a square with a lake, and a land of two islands, one of them across
// the 180th meridian.
const borders = `{"type":"FeatureCollection","features":[
	{"type":"Feature","properties":{"ISO_A2_EH":"AA"},"geometry":{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[6,4],[6,6],[4,6],[4,4]]]}},
	{"type":"Feature","properties":{"ISO_A2_EH":"BB"},"geometry":{"type":"MultiPolygon","coordinates":[[[[20,0],[30,0],[30,10],[20,10],[20,0]]],[[[178,-20],[-178,-20],[-178,-15],[178,-15],[178,-20]]]]}},
	{"type":"Feature","properties":{"ISO_A2_EH":"-99"},"geometry":{"type":"Polygon","coordinates":[[[40,0],[50,0],[50,10],[40,0]]]}},
	{"type":"Feature","properties":{},"geometry":null}]}`

// opened is a matcher with a file of borders.
func opened(t *testing.T, text string) (*geo.Matcher, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "borders.geojson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := geo.New()
	if err := json.Unmarshal([]byte(`{"borders":"`+path+`"}`), m.Config()); err != nil {
		t.Fatal(err)
	}
	_, err := m.Open(t.Context(), sdk.OpenRequest{})
	return m, err
}

func TestCountries(t *testing.T) {
	t.Parallel()
	m, err := opened(t, borders)
	if err != nil {
		t.Fatal(err)
	}
	if ops := m.Operators(); ops[len(ops)-1].ID != "geo/country" || m.DataVersion() == "" {
		t.Fatalf("offers %+v of %q", ops, m.DataVersion())
	}
	for _, tt := range []struct {
		name, value, property string
		in                    bool
	}{
		{"in the country", `"AA"`, `"2,2"`, true},
		{"whatever the case", `"aa"`, `"2,2"`, true},
		{"in its lake", `"AA"`, `"5,5"`, false},
		{"outside", `"AA"`, `"2,11"`, false},
		{"on an island", `["BB"]`, `"5,25"`, true},
		{"on the other, west of the meridian", `"BB"`, `"-18,179"`, true},
		{"and east of it", `"BB"`, `"-18,-179"`, true},
		{"in one of two", `["AA","BB"]`, `"5,25"`, true},
		{"no point", `"AA"`, `"here"`, false},
	} {
		p, err := m.Compile("geo/country", json.RawMessage(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(&sdk.Input{Value: json.RawMessage(tt.property)}); got != sdk.Matches(tt.in) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	p, err := m.Compile("geo/country", json.RawMessage(`{"codes":["AA"],"of":["lat","lng"]}`))
	if r, ok := p.(sdk.Reader); err != nil || !ok || !slices.Equal(r.Reads(), []string{"lat", "lng"}) {
		t.Errorf("%+v %v", p, err)
	}
	for value, says := range map[string]string{`"ZZ"`: "has the code", `["AA","ZZ"]`: "has the code", `{"codes":["AA"],"x":1}`: "unknown field", `[]`: "no country"} {
		if _, err := m.Compile("geo/country", json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := geo.New().Compile("geo/country", json.RawMessage(`"AA"`)); err == nil {
		t.Error("a matcher without borders knows countries")
	}
}

func TestBordersThatAreRefused(t *testing.T) {
	t.Parallel()
	square := `[[[0,0],[10,0],[10,10],[0,0]]]`
	feature := func(kind, coordinates string) string {
		return `{"type":"FeatureCollection","features":[{"properties":{"ISO_A2_EH":"AA"},"geometry":{"type":"` + kind + `","coordinates":` + coordinates + `}}]}`
	}
	for text, says := range map[string]string{
		`no`:                              "no GeoJSON",
		`{"type":"Feature"}`:              "no GeoJSON",
		feature("Point", `[1,2]`):         "not \"Point\"",
		feature("Polygon", `[[[0,0]]]`):   "four positions",
		feature("Polygon", `[[[0],[1]]]`): "two numbers",
		feature("Polygon", `[[[0,99],[1,1],[2,2],[0,99]]]`): "not on the earth",
		feature("MultiPolygon", square):                     "cannot unmarshal",
		`{"type":"FeatureCollection","features":[]}`:        "no feature has a property",
	} {
		_, err := opened(t, text)
		if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != "/borders" || !strings.Contains(e.Message, says) {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(`{"points":[{"lat":0,"lng":170},{"lat":0,"lng":-170},{"lat":9,"lng":180}]}`, `"1,179"`)
	f.Fuzz(func(t *testing.T, value, property string) {
		p, err := geo.New().Compile("geo/in_polygon", json.RawMessage(value))
		if err == nil && json.Valid([]byte(property)) {
			if v := p.Match(&sdk.Input{Value: json.RawMessage(property)}); v != sdk.Match && v != sdk.NoMatch {
				t.Errorf("%s", v)
			}
		}
	})
}
