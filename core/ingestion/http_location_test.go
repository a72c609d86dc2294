package ingestion_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// places is a locator: the clients of tests are in Home, 192.0.2.7 is in Away.
type places struct{}

func (places) Locate(addr netip.Addr) []byte {
	v := location.Values{}
	switch {
	case addr.IsLoopback():
		v[0] = `"Home"`
	case addr == netip.MustParseAddr("192.0.2.7"):
		v[0], v[2] = `"Away"`, `"AW"`
	}
	return v.Append(nil)
}

// An event has the location of the address that it names, else that of the
// connection. The journal has it also for a project that keeps no addresses.
func TestCaptureLocatesEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, properties, want string }{
		{"of the connection", "phc_x", `{"a":1}`, `{"$ip":"127.0.0.1","$geoip_city_name":"Home","a":1}`},
		{"of the address that it names", "phc_x", `{"$ip":"192.0.2.7","$geoip_city_name":"mine"}`, `{"$ip":"192.0.2.7","$geoip_city_name":"mine","$geoip_country_code":"AW"}`},
		{"of no address", "phc_x", `{"$ip":"nowhere"}`, `{"$ip":"nowhere"}`},
		{"turned off", "phc_x", `{"$ip":"192.0.2.7","$geoip_disable":true}`, `{"$ip":"192.0.2.7","$geoip_disable":true}`},
		{"without an address", "phc_private", `{"a":1}`, `{"$geoip_city_name":"Home","a":1}`},
		{"without an address that it names", "phc_private", `{"$ip":"192.0.2.7"}`, `{"$geoip_city_name":"Away","$geoip_country_code":"AW"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := new(memoryJournal)
			base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithLocator(places{}))
			send(t, "POST", base+"/batch/", "", `{"api_key":"`+c.key+`","batch":[{"event":"a","distinct_id":"u","properties":`+c.properties+`}]}`)
			events, _ := j.events(t)
			if got := string(events[0].Properties); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if rec, err := event.ParseRecord(j.records[0]); err != nil || c.key == "phc_private" && rec.ClientIP.IsValid() {
				t.Errorf("the journal holds %v, %v", rec.ClientIP, err)
			}
		})
	}
}

// Without a locator a record is the same as before, byte for byte.
func TestCaptureWithoutLocations(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	send(t, "POST", serve(t, j)+"/e/", "", `{"api_key":"phc_x","event":"a","distinct_id":"u","properties":{"$ip":"192.0.2.7"}}`)
	if len(j.records) != 1 || j.records[0][0] != 1 || !bytes.Contains(j.records[0], []byte(`{"$ip":"192.0.2.7"}`)) || strings.Contains(string(j.records[0]), "geoip") {
		t.Errorf("%q", j.records)
	}
}
