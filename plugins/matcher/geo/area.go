package geo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// spot is a point on the earth, in degrees.
type spot struct {
	Lat float64 `json:"lat"`
	Lng float64 `json:"lng"`
}

// area reports whether a point is inside.
type area func(p spot) bool

// read reads the value of a filter, which has passed its schema.
func read(operator string, value json.RawMessage) (inside area, of []string, err error) {
	var in struct {
		spot
		KM                       float64
		South, West, North, East float64
		Points                   []spot
		Of                       []string
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, nil, sdk.ValueError("", err)
	}
	switch operator {
	case "geo/near":
		return circle(in.spot, in.KM), in.Of, nil
	case "geo/in_box":
		if in.South > in.North {
			return nil, nil, sdk.ValueError("/north", errors.New("is south of south"))
		}
		return box(in.South, in.West, in.North, in.East), in.Of, nil
	}
	if len(in.Points) < 3 {
		return nil, nil, sdk.ValueError("/points", errors.New("want at least three corners"))
	}
	for i, p := range in.Points {
		if _, ok := checked(p.Lat, p.Lng); !ok {
			return nil, nil, sdk.ValueError(fmt.Sprintf("/points/%d", i), errors.New("is not on the earth"))
		}
	}
	return polygon(in.Points), in.Of, nil
}

// earth is its mean radius in kilometres.
const earth = 6371.0088

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

// circle is everything at most so far from a point on a sphere. The formula
// stays exact for small distances.
func circle(centre spot, km float64) area {
	return func(p spot) bool {
		lat := math.Sin(radians(p.Lat-centre.Lat) / 2)
		lng := math.Sin(radians(p.Lng-centre.Lng) / 2)
		h := lat*lat + math.Cos(radians(centre.Lat))*math.Cos(radians(p.Lat))*lng*lng
		return 2*earth*math.Asin(math.Sqrt(min(1, h))) <= km
	}
}

func box(south, west, north, east float64) area {
	return func(p spot) bool {
		if p.Lat < south || p.Lat > north {
			return false
		}
		if west <= east {
			return p.Lng >= west && p.Lng <= east
		}
		return p.Lng >= west || p.Lng <= east
	}
}

// polygon counts how often a line from the point to the north crosses a side.
// Corners are moved by whole turns so that no side is wider than half the earth,
// and the point is tried on each turn that they reach.
func polygon(points []spot) area {
	corners := make([]spot, len(points))
	low, high := points[0].Lng, points[0].Lng
	for i, p := range points {
		if i > 0 {
			p.Lng = corners[i-1].Lng + math.Remainder(p.Lng-corners[i-1].Lng, 360)
		}
		corners[i] = p
		low, high = min(low, p.Lng), max(high, p.Lng)
	}
	return func(p spot) bool {
		for lng := p.Lng - 360; lng <= high; lng += 360 {
			if lng >= low && crossed(corners, p.Lat, lng) {
				return true
			}
		}
		return false
	}
}

func crossed(corners []spot, lat, lng float64) bool {
	inside := false
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		if (a.Lng > lng) != (b.Lng > lng) && lat < a.Lat+(lng-a.Lng)*(b.Lat-a.Lat)/(b.Lng-a.Lng) {
			inside = !inside
		}
	}
	return inside
}

// place reads a property that is a point by itself.
func place(in *sdk.Input) (spot, bool) {
	if text, ok := in.String(); ok {
		lat, lng, ok := strings.Cut(text, ",")
		if !ok {
			return spot{}, false
		}
		return checked(number(lat), number(lng))
	}
	if p, ok := named(in.Value, "lat", "lng"); ok {
		return p, true
	}
	return named(in.Value, "latitude", "longitude")
}

// named reads a point from two members of an object.
func named(object json.RawMessage, lat, lng string) (spot, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return spot{}, false
	}
	return checked(loose(members[lat]), loose(members[lng]))
}

// loose reads a JSON number, or a text that is one.
func loose(raw json.RawMessage) float64 {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return number(text)
}

func number(text string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

func checked(lat, lng float64) (spot, bool) {
	return spot{lat, lng}, math.Abs(lat) <= 90 && math.Abs(lng) <= 180 // false for NaN
}
