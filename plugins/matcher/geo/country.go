package geo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Borders string `json:"borders" format:"path" doc:"GeoJSON file with the borders of countries, such as Natural Earth's (public domain). With it there is geo/country."`
	Code    string `json:"code" doc:"Property of the file's features that has the code of the country."`
}

// maxBorders bounds the file with the borders.
const maxBorders = 128 << 20

// world is the countries of a file.
type world struct {
	version   string
	countries map[string][]land // by code, in upper case
}

// land is one piece of a country: a ring around it, and rings around areas that are not
// part of it.
type land struct {
	south, north float64
	around       area
	without      []area
}

// feature is one of a GeoJSON collection (RFC 7946).
type feature struct {
	Properties map[string]any
	Geometry   *struct {
		Type        string
		Coordinates json.RawMessage
	}
}

// load reads the borders. Features without a code are left out: they are no
// country to this file.
func load(path, code string) (*world, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxBorders+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBorders {
		return nil, fmt.Errorf("the file is larger than %d MB", maxBorders>>20)
	}
	var in struct {
		Type     string
		Features []feature
	}
	if err := json.Unmarshal(text, &in); err != nil || in.Type != "FeatureCollection" {
		return nil, errors.Join(errors.New("this is no GeoJSON FeatureCollection"), err)
	}
	sum := sha256.Sum256(append(text, code...))
	w := &world{version: hex.EncodeToString(sum[:8]), countries: map[string][]land{}}
	for i := range in.Features {
		f := &in.Features[i]
		name, _ := f.Properties[code].(string)
		if name = strings.ToUpper(strings.TrimSpace(name)); name == "" || name == "-99" || f.Geometry == nil {
			continue
		}
		pieces, err := pieces(f.Geometry.Type, f.Geometry.Coordinates)
		if err != nil {
			return nil, fmt.Errorf("feature %d (%s): %w", i, name, err)
		}
		w.countries[name] = append(w.countries[name], pieces...)
	}
	if len(w.countries) == 0 {
		return nil, fmt.Errorf("no feature has a property %s", code)
	}
	return w, nil
}

// pieces reads a Polygon or a MultiPolygon.
func pieces(kind string, coordinates json.RawMessage) ([]land, error) {
	var many [][][][]float64
	switch kind {
	case "Polygon":
		many = make([][][][]float64, 1)
		if err := json.Unmarshal(coordinates, &many[0]); err != nil {
			return nil, err
		}
	case "MultiPolygon":
		if err := json.Unmarshal(coordinates, &many); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("a border is a Polygon or a MultiPolygon, not %q", kind)
	}
	out := make([]land, 0, len(many))
	for _, rings := range many {
		var l land
		for i, ring := range rings {
			points, err := corners(ring)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				l.without = append(l.without, polygon(points))
				continue
			}
			l.south, l.north = points[0].Lat, points[0].Lat
			for _, p := range points {
				l.south, l.north = min(l.south, p.Lat), max(l.north, p.Lat)
			}
			l.around = polygon(points)
		}
		if l.around != nil {
			out = append(out, l)
		}
	}
	return out, nil
}

// corners reads a ring, whose last point repeats the first.
func corners(ring [][]float64) ([]spot, error) {
	points := make([]spot, 0, len(ring))
	for _, at := range ring {
		if len(at) < 2 {
			return nil, errors.New("a position has two numbers")
		}
		p, ok := checked(at[1], at[0])
		if !ok {
			return nil, fmt.Errorf("%v is not on the earth", at)
		}
		points = append(points, p)
	}
	if len(points) < 4 {
		return nil, errors.New("a ring has at least four positions")
	}
	return points[:len(points)-1], nil
}

func (l *land) has(p spot) bool {
	if p.Lat < l.south || p.Lat > l.north || !l.around(p) {
		return false
	}
	return !slices.ContainsFunc(l.without, func(hole area) bool { return hole(p) })
}

// in is everything within some countries.
func (w *world) in(codes []string) (area, error) {
	var lands []land
	for i, code := range codes {
		found, ok := w.countries[strings.ToUpper(strings.TrimSpace(code))]
		if !ok {
			return nil, sdk.ValueError(fmt.Sprintf("/%d", i), fmt.Errorf("no country of the borders has the code %q", code))
		}
		lands = append(lands, found...)
	}
	return func(p spot) bool { return slices.ContainsFunc(lands, func(l land) bool { return l.has(p) }) }, nil
}

// country reads the value of geo/country: a code, a list of them, or an object
// that also names the two properties of the point.
func (w *world) country(value json.RawMessage) (inside area, of []string, err error) {
	var in struct {
		Codes []string `json:"codes"`
		Of    []string `json:"of"`
	}
	var one string
	switch {
	case json.Unmarshal(value, &one) == nil:
		in.Codes = []string{one}
	case json.Unmarshal(value, &in.Codes) == nil:
	default:
		d := json.NewDecoder(bytes.NewReader(value))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return nil, nil, sdk.ValueError("", err)
		}
	}
	if len(in.Codes) == 0 {
		return nil, nil, sdk.ValueError("", errors.New("names no country"))
	}
	inside, err = w.in(in.Codes)
	return inside, in.Of, err
}
