// Package geoiptest writes small databases of locations for tests.
package geoiptest

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Place is a record of a test database.
type Place struct {
	City, Country, Code string
	Latitude, Longitude float64
}

// Berlin, Paris and Nowhere are the places of Write: Nowhere is a country alone.
var (
	Berlin  = Place{City: "Berlin", Country: "Germany", Code: "DE", Latitude: 52.5196, Longitude: 13.4069}
	Paris   = Place{City: "Paris", Country: "France", Code: "FR", Latitude: 48.8566, Longitude: 2.3522}
	Nowhere = Place{Country: "Iceland", Code: "IS"}
)

// The networks of Write.
const (
	BerlinAddress  = "81.2.69.142"
	BerlinIPv6     = "2001:470:1f0b::1"
	ParisAddress   = "89.160.20.129"
	NowhereAddress = "216.160.83.56"
	PrivateAddress = "10.1.2.3" // has a record, too
	UnknownAddress = "9.9.9.9"
)

// Build returns a database with a record for each network.
func Build(t testing.TB, places map[string]Place) []byte {
	t.Helper()
	w, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Guidon-Test-City", RecordSize: 28, IncludeReservedNetworks: true, BuildEpoch: 1_700_000_000})
	if err != nil {
		t.Fatal(err)
	}
	for network, p := range places {
		_, prefix, err := net.ParseCIDR(network)
		if err == nil {
			err = w.Insert(prefix, p.record())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (p Place) record() mmdbtype.Map {
	named := func(english string, more mmdbtype.Map) mmdbtype.Map {
		more["names"] = mmdbtype.Map{"en": mmdbtype.String(english), "de": mmdbtype.String("auf Deutsch")}
		return more
	}
	r := mmdbtype.Map{
		"country":   named(p.Country, mmdbtype.Map{"iso_code": mmdbtype.String(p.Code)}),
		"continent": named("Europe", mmdbtype.Map{"code": mmdbtype.String("EU")}),
	}
	if p.City == "" {
		return r
	}
	r["city"] = named(p.City, mmdbtype.Map{})
	r["postal"] = mmdbtype.Map{"code": mmdbtype.String("10115")}
	r["location"] = mmdbtype.Map{
		"latitude": mmdbtype.Float64(p.Latitude), "longitude": mmdbtype.Float64(p.Longitude),
		"accuracy_radius": mmdbtype.Uint16(20), "time_zone": mmdbtype.String("Europe/" + p.City),
	}
	r["subdivisions"] = mmdbtype.Slice{
		named("State of "+p.City, mmdbtype.Map{"iso_code": mmdbtype.String("S1")}),
		named("District of "+p.City, mmdbtype.Map{"iso_code": mmdbtype.String("S2")}),
	}
	return r
}

// Database returns a database of the networks that the constants name.
func Database(t testing.TB) []byte {
	t.Helper()
	return Build(t, map[string]Place{
		"81.2.69.0/24": Berlin, "2001:470:1f0b::/48": Berlin, "89.160.20.0/24": Paris, "216.160.83.0/24": Nowhere, "10.0.0.0/8": Berlin,
	})
}

// Write writes Database to a new file and returns its path.
func Write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "city.mmdb")
	Replace(t, path, Database(t))
	return path
}

// Replace replaces a file atomically, as operators should.
func Replace(t testing.TB, path string, raw []byte) {
	t.Helper()
	next := path + ".new"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}
