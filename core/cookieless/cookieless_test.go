package cookieless_test

import (
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func visitor() cookieless.Visitor {
	return cookieless.Visitor{ProjectID: 1, Addr: netip.MustParseAddr("192.0.2.7"), Host: "www.example.com", Agent: "Mozilla/5.0", At: noon}
}

func salts(t *testing.T, d *db.DB, now *time.Time) *cookieless.Salts {
	t.Helper()
	s := cookieless.NewSalts(d, nil, func() time.Time { return *now })
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func identify(t *testing.T, s *cookieless.Salts, change func(v *cookieless.Visitor)) cookieless.Identity {
	t.Helper()
	v := visitor()
	if change != nil {
		change(&v)
	}
	id, ok := s.Identify(&v)
	if !ok {
		t.Fatalf("%+v has no id", v)
	}
	return id
}

// Visitors differ by project, address, domain, user agent, further text and day; the
// same visitor has the same ids on all nodes.
func TestVisitorsAreToldApart(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		now := noon
		s := salts(t, d, &now)
		base := identify(t, s, nil)
		if !regexp.MustCompile(`^cookieless_[A-Za-z0-9_-]{22}$`).MatchString(base.DistinctID) || base.DeviceID != "cookielessd_"+base.DistinctID[11:] ||
			!regexp.MustCompile(`^019cd50b-1800-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(base.SessionID) {
			t.Errorf("%+v", base)
		}
		for name, c := range map[string]struct {
			same   bool
			change func(v *cookieless.Visitor)
		}{
			"nothing":             {true, func(*cookieless.Visitor) {}},
			"another page":        {true, func(v *cookieless.Visitor) { v.Host = "https://SHOP.example.com/a?b=c" }},
			"a mapped address":    {true, func(v *cookieless.Visitor) { v.Addr = netip.MustParseAddr("::ffff:192.0.2.7") }},
			"another hour":        {true, func(v *cookieless.Visitor) { v.At = v.At.Add(11 * time.Hour) }},
			"an unknown zone":     {true, func(v *cookieless.Visitor) { v.Zone = "../../etc/passwd" }},
			"a zone of that day":  {false, func(v *cookieless.Visitor) { v.Zone = "Pacific/Kiritimati" }},
			"a port":              {false, func(v *cookieless.Visitor) { v.Host = "www.example.com:8080" }},
			"another project":     {false, func(v *cookieless.Visitor) { v.ProjectID = 2 }},
			"another address":     {false, func(v *cookieless.Visitor) { v.Addr = netip.MustParseAddr("192.0.2.8") }},
			"another site":        {false, func(v *cookieless.Visitor) { v.Host = "www.example.org" }},
			"a site of many":      {false, func(v *cookieless.Visitor) { v.Host = "a.github.io" }},
			"another browser":     {false, func(v *cookieless.Visitor) { v.Agent = "curl" }},
			"further text":        {false, func(v *cookieless.Visitor) { v.Extra = "x" }},
			"a part moved":        {false, func(v *cookieless.Visitor) { v.Host, v.Agent = "", "example.com"+v.Agent }},
			"another day":         {false, func(v *cookieless.Visitor) { v.At = v.At.Add(-12*time.Hour - 1) }},
			"an address for host": {false, func(v *cookieless.Visitor) { v.Host = "[::1]:80" }},
		} {
			if got := identify(t, s, c.change); (got.DistinctID == base.DistinctID) != c.same {
				t.Errorf("%s: %+v, %+v", name, got, base)
			}
		}
		if other := identify(t, salts(t, d, &now), nil); other != base {
			t.Errorf("another node has %+v, not %+v", other, base)
		}
		v := visitor()
		v.Addr = netip.Addr{}
		if id, ok := s.Identify(&v); ok {
			t.Errorf("without an address: %+v", id)
		}
	})
}

// Salts exist before their day begins anywhere and are deleted 86 hours after it
// began, also from memory.
func TestSaltsLiveForTheirDays(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		now := noon
		s := salts(t, d, &now)
		before := identify(t, s, nil)
		v := visitor()
		for at, want := range map[time.Duration]bool{
			-3 * 24 * time.Hour: true, -4 * 24 * time.Hour: false, 24 * time.Hour: true, 48 * time.Hour: false,
		} {
			v.At = noon.Add(at)
			if _, ok := s.Identify(&v); ok != want {
				t.Errorf("%v later: %v", at, ok)
			}
		}
		now = noon.Add(30 * time.Hour) // no refresh since: the database is away
		v.At = now
		if _, ok := s.Identify(&v); !ok {
			t.Error("no salt is ready for the next day")
		}
		now = noon.Add(73 * time.Hour)
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := identify(t, s, nil); late != before {
			t.Errorf("a late event has %+v, not %+v", late, before)
		}
		now = noon.Add(74 * time.Hour)
		v.At = noon
		if _, ok := s.Identify(&v); ok {
			t.Error("the id of an old day derives without a refresh")
		}
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		var days []string
		err := d.Read(t.Context()).NewSelect().TableExpr("?", bun.Ident("cookieless_salts")).Column("day").Order("day").Scan(t.Context(), &days)
		if err != nil || len(days) == 0 || days[0] != "2026-03-11" {
			t.Errorf("%v, %v", days, err)
		}
	})
}

func FuzzIdentify(f *testing.F) {
	f.Add("www.example.com", "agent", "Europe/Berlin", "")
	f.Add("http://[::1", "", "\x00", "x")
	d := dbtest.SQLite(f)
	now := noon
	s := cookieless.NewSalts(d, nil, func() time.Time { return now })
	if err := s.Refresh(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host, agent, zone, extra string) {
		v := visitor()
		v.Host, v.Agent, v.Zone, v.Extra = host, agent, zone, extra
		a, ok := s.Identify(&v)
		if b, _ := s.Identify(&v); !ok || a != b {
			t.Errorf("%+v, %+v", a, b)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	d := dbtest.SQLite(b)
	now := noon
	s := cookieless.NewSalts(d, nil, func() time.Time { return now })
	if err := s.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	v := visitor()
	for b.Loop() {
		s.Identify(&v)
	}
}
