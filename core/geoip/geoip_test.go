package geoip_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/geoip"
	"github.com/guidonhq/guidon/core/geoip/geoiptest"
	"github.com/guidonhq/guidon/core/geoip/location"
)

func open(t testing.TB, path string) (*geoip.Database, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	d := geoip.New(geoip.Config{Database: path, ReloadInterval: time.Hour}, zap.New(core), nil)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(t.Context()) })
	return d, logs
}

func locate(d *geoip.Database, addr string) string {
	parsed, _ := netip.ParseAddr(addr)
	return string(location.AppendObject(nil, d.Locate(parsed)))
}

func TestLocate(t *testing.T) {
	d, _ := open(t, geoiptest.Write(t))
	const berlin = `{"$geoip_city_name":"Berlin","$geoip_country_name":"Germany","$geoip_country_code":"DE","$geoip_continent_name":"Europe",` +
		`"$geoip_continent_code":"EU","$geoip_postal_code":"10115","$geoip_latitude":52.5196,"$geoip_longitude":13.4069,"$geoip_accuracy_radius":20,` +
		`"$geoip_time_zone":"Europe/Berlin","$geoip_subdivision_1_code":"S1","$geoip_subdivision_1_name":"State of Berlin",` +
		`"$geoip_subdivision_2_code":"S2","$geoip_subdivision_2_name":"District of Berlin"}`
	for addr, want := range map[string]string{
		geoiptest.BerlinAddress:              berlin,
		geoiptest.BerlinIPv6:                 berlin,
		"::ffff:" + geoiptest.BerlinAddress:  berlin,
		geoiptest.BerlinIPv6 + "%eth0":       berlin,
		geoiptest.NowhereAddress:             `{"$geoip_country_name":"Iceland","$geoip_country_code":"IS","$geoip_continent_name":"Europe","$geoip_continent_code":"EU"}`,
		geoiptest.UnknownAddress:             `{}`,
		geoiptest.PrivateAddress:             `{}`,
		"::ffff:" + geoiptest.PrivateAddress: `{}`,
		"127.0.0.1":                          `{}`,
		"100.64.1.1":                         `{}`,
		"fe80::1":                            `{}`,
		"no address":                         `{}`,
	} {
		for range 2 { // decoded, then from memory
			if got := locate(d, addr); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", addr, got, want)
			}
		}
	}
	if s := d.Status(); s.State != "ok" || s.Type != "Guidon-Test-City" || s.Built.Unix() != 1_700_000_000 || s.Degraded() {
		t.Errorf("%+v", s)
	}
}

func TestNoFileIsConfigured(t *testing.T) {
	d, logs := open(t, "")
	if d.Enabled() || locate(d, geoiptest.BerlinAddress) != "{}" || logs.Len() > 0 {
		t.Errorf("enabled %v, log %v", d.Enabled(), logs.All())
	}
}

// A server starts without its file and uses the file once it is there. A new file
// replaces the one in use; a damaged or missing one does not.
func TestFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	d, logs := open(t, path)
	expect := func(state, city, logged string) {
		t.Helper()
		d.Refresh()
		d.Refresh() // an unchanged file is not read and not logged again
		want := `{"$geoip_city_name":"` + city
		if got := locate(d, geoiptest.BerlinAddress); len(got) < len(want) && city != "" || city != "" && got[:len(want)] != want || city == "" && got != "{}" {
			t.Errorf("located %s, want %q", got, city)
		}
		if s := d.Status(); s.State != state || s.Degraded() != (state != "ok") {
			t.Errorf("%+v, want %s", s, state)
		}
		all := logs.TakeAll()
		if len(all) != 1 || all[0].Message != logged {
			t.Errorf("log %v, want %q", all, logged)
		}
	}
	expect("missing", "", "geoip database unavailable: events and flags have no location")
	if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("failed", "", "geoip database unavailable: events and flags have no location")
	whole := geoiptest.Database(t)
	geoiptest.Replace(t, path, whole)
	expect("ok", "Berlin", "geoip database loaded")
	geoiptest.Replace(t, path, whole[:len(whole)/2])
	expect("stale", "Berlin", "geoip database reload failed: the old one stays in use")
	geoiptest.Replace(t, path, geoiptest.Build(t, map[string]geoiptest.Place{"81.2.69.0/24": geoiptest.Paris}))
	expect("ok", "Paris", "geoip database loaded")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("stale", "Paris", "geoip database reload failed: the old one stays in use")
	damaged := append([]byte(nil), whole...)
	for i := range 64 { // the root of the tree
		damaged[i] ^= 0xff
	}
	geoiptest.Replace(t, path, damaged)
	expect("stale", "Paris", "geoip database reload failed: the old one stays in use")
}

// The running service looks at the file by itself.
func TestReloadsWhileRunning(t *testing.T) {
	path := geoiptest.Write(t)
	d := geoip.New(geoip.Config{Database: path, ReloadInterval: time.Millisecond}, nil, nil)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Stop(t.Context()) }()
	geoiptest.Replace(t, path, geoiptest.Build(t, map[string]geoiptest.Place{"9.9.9.0/24": geoiptest.Paris}))
	for end := time.Now().Add(time.Minute); locate(d, geoiptest.UnknownAddress) == "{}"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the new file is not used: %+v", d.Status())
		}
	}
}

func BenchmarkLocate(b *testing.B) {
	d, _ := open(b, geoiptest.Write(b))
	for name, addr := range map[string]string{"known": geoiptest.BerlinAddress, "unknown": geoiptest.UnknownAddress, "private": geoiptest.PrivateAddress} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			a := netip.MustParseAddr(addr)
			for b.Loop() {
				d.Locate(a)
			}
		})
	}
}
