package event_test

import (
	"net/netip"
	"testing"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

var berlin = (&location.Values{0: `"Berlin"`, 2: `"DE"`}).Append(nil)

// The location of a record is that of its events, unless they name another address
// or turn it off. It never replaces a property that the client has sent.
func TestDecodeLocation(t *testing.T) {
	cases := []struct{ name, props, want string }{
		{"is filled in", `{"a":1}`, `{"$ip":"192.0.2.7","$geoip_city_name":"Berlin","$geoip_country_code":"DE","a":1}`},
		{"is filled in without properties", `{}`, `{"$ip":"192.0.2.7","$geoip_city_name":"Berlin","$geoip_country_code":"DE"}`},
		{"fills gaps", `{"$geoip_city_name":null,"$geoip_x":1}`, `{"$ip":"192.0.2.7","$geoip_country_code":"DE","$geoip_city_name":null,"$geoip_x":1}`},
		{"fills gaps beside an escaped name", `{"\u0024geoip_country_code":"FR"}`, `{"$ip":"192.0.2.7","$geoip_city_name":"Berlin","\u0024geoip_country_code":"FR"}`},
		{"is not that of another address", `{"$ip":"198.51.100.1"}`, `{"$ip":"198.51.100.1"}`},
		{"is not that of no address", `{"$ip":null}`, `{"$ip":null}`},
		{"is off inside", `{"capture_internal":true}`, `{"$ip":"127.0.0.1","capture_internal":true}`},
		{"is off on request", `{"$geoip_disable":true}`, `{"$ip":"192.0.2.7","$geoip_disable":true}`},
		{"is off with a string", `{"$geoip_disable":"1"}`, `{"$ip":"192.0.2.7","$geoip_disable":"1"}`},
		{"is not off with false", `{"$geoip_disable":false}`, `{"$ip":"192.0.2.7","$geoip_city_name":"Berlin","$geoip_country_code":"DE","$geoip_disable":false}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := ingestiontest.Record(`{"event":"a","distinct_id":"u","properties":` + c.props + `}`)
			rec.ClientIP, rec.Location = netip.MustParseAddr("192.0.2.7"), berlin
			parsed, err := event.ParseRecord(rec.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(ingestiontest.Decode(parsed).Events[0].Properties); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A project that keeps no addresses keeps locations.
func TestDecodeLocationWithoutAddress(t *testing.T) {
	rec := ingestiontest.Record(`[{"event":"a","distinct_id":"u"},{"event":"a","distinct_id":"u","properties":{"$ip":"198.51.100.1"}}]`)
	rec.Anonymise, rec.Location = true, berlin
	got := ingestiontest.Decode(rec).Events
	if a, b := string(got[0].Properties), string(got[1].Properties); a != `{"$geoip_city_name":"Berlin","$geoip_country_code":"DE"}` || b != `{}` {
		t.Errorf("got %s and %s", a, b)
	}
}
