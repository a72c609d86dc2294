package geoip

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/jsontext"
)

// maxCached is the number of records whose compact form is kept: about 20 MB.
const maxCached = 1 << 16

// file is one version of the file, with its decoded records. It is safe for
// concurrent use.
type file struct {
	reader  *maxminddb.Reader
	decoded atomic.Pointer[sync.Map] // compact form by offset of the record
	cached  atomic.Int64
}

// open reads the metadata of a file and verifies its tree and all its records.
func open(raw []byte) (*file, error) {
	reader, err := maxminddb.OpenBytes(raw)
	if err != nil {
		return nil, err
	}
	if err := verify(reader, len(raw)); err != nil {
		return nil, err
	}
	return newFile(reader), nil
}

var errTree = errors.New("its search tree has more leaves than a tree of its size")

// verify walks through the tree and decodes each record once. The verification of
// the library is stricter: it refuses files without a description, which are in
// use.
func verify(reader *maxminddb.Reader, size int) error {
	seen := make([]uint64, size/64+1) // a bit for each offset
	leaves := uint(0)
	for res := range reader.Networks(maxminddb.IncludeNetworksWithoutData()) {
		if err := res.Err(); err != nil {
			return err
		}
		if leaves++; leaves > reader.Metadata.NodeCount+1 {
			return errTree
		}
		at := res.Offset()
		if !res.Found() || at < uintptr(size) && seen[at/64]&(1<<(at%64)) != 0 {
			continue
		}
		if at < uintptr(size) {
			seen[at/64] |= 1 << (at % 64)
		}
		var r record
		if err := res.Decode(&r); isDamage(err) {
			return fmt.Errorf("the record of %s: %w", res.Prefix(), err)
		}
	}
	return nil
}

// isDamage reports whether a record cannot be read. A value of another type than
// that of MaxMind's files is no damage.
func isDamage(err error) bool {
	if err == nil {
		return false
	}
	_, ok := errors.AsType[maxminddb.UnmarshalTypeError](err)
	return !ok
}

func newFile(reader *maxminddb.Reader) *file {
	f := &file{reader: reader}
	f.decoded.Store(new(sync.Map))
	return f
}

// hasLocations reports whether the type of the file is one with locations.
func (f *file) hasLocations() bool {
	name := strings.ToLower(f.reader.Metadata.DatabaseType)
	for _, kind := range []string{"city", "country", "enterprise", "insights", "location"} {
		if strings.Contains(name, kind) {
			return true
		}
	}
	return false
}

// locate returns the compact form of the record of an address.
func (f *file) locate(addr netip.Addr) []byte {
	res := f.reader.Lookup(addr)
	if !res.Found() {
		return nil
	}
	known := f.decoded.Load()
	if v, ok := known.Load(res.Offset()); ok {
		return v.([]byte)
	}
	compact := decode(res)
	if f.cached.Add(1) > maxCached {
		f.cached.Store(0)
		known = new(sync.Map)
		f.decoded.Store(known)
	}
	known.Store(res.Offset(), compact)
	return compact
}

// name is a name in several languages, of which the server uses the English one.
type name struct {
	Names struct {
		English string `maxminddb:"en"`
	} `maxminddb:"names"`
}

// record is the part of a record that becomes properties. Its names are those of
// the City and Country databases of MaxMind and of the files of others in their
// form.
type record struct {
	City    name `maxminddb:"city"`
	Country struct {
		name
		Code string `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Continent struct {
		name
		Code string `maxminddb:"code"`
	} `maxminddb:"continent"`
	Postal struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"postal"`
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
		Radius    uint     `maxminddb:"accuracy_radius"`
		TimeZone  string   `maxminddb:"time_zone"`
	} `maxminddb:"location"`
}

// subdivision is a region of a country.
type subdivision struct {
	name
	Code string `maxminddb:"iso_code"`
}

// subdivisions is the number of regions, one inside the other, that have
// properties.
const subdivisions = 3

// decode returns the compact form of a record. Parts that cannot be decoded are
// unknown.
func decode(res maxminddb.Result) []byte {
	var r record
	_ = res.Decode(&r)
	v := location.Values{
		quoted(r.City.Names.English), quoted(r.Country.Names.English), quoted(r.Country.Code),
		quoted(r.Continent.Names.English), quoted(r.Continent.Code), quoted(r.Postal.Code),
		number(r.Location.Latitude), number(r.Location.Longitude), radius(r.Location.Radius), quoted(r.Location.TimeZone),
	}
	for i := range subdivisions {
		var s subdivision
		if res.DecodePath(&s, "subdivisions", i) != nil {
			break
		}
		v[10+2*i], v[11+2*i] = quoted(s.Code), quoted(s.Names.English)
	}
	return v.Append(nil)
}

// quoted returns a text as JSON without line breaks and NUL, "" for an empty one.
func quoted(s string) string {
	if s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), ""); s == "" {
		return ""
	}
	return string(jsontext.AppendString(nil, s))
}

func number(f *float64) string {
	if f == nil || math.IsNaN(*f) || math.Abs(*f) > 360 {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

// radius returns the accuracy of a position in kilometres.
func radius(km uint) string {
	if km == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(km), 10)
}
