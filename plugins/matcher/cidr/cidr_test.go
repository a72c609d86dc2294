package cidr_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins/matcher/cidr"
	"github.com/guidonhq/guidon/sdk"
)

func program(t testing.TB, operator, value string) sdk.Program {
	t.Helper()
	p, err := cidr.Matcher{}.Compile(operator, json.RawMessage(value))
	if err != nil {
		t.Fatalf("%s %s: %v", operator, value, err)
	}
	return p
}

func verdict(p sdk.Program, property string) sdk.Verdict {
	return p.Match(&sdk.Input{Value: json.RawMessage(property)})
}

func TestAddressesInNetworks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value, property string
		in                    bool
	}{
		{"the first address of a network is in it", `"10.0.0.0/8"`, `"10.0.0.0"`, true},
		{"and so is the last", `"10.0.0.0/8"`, `"10.255.255.255"`, true},
		{"the one behind it is not", `"10.0.0.0/8"`, `"11.0.0.0"`, false},
		{"host bits of a network do not count", `"10.1.2.3/8"`, `"10.9.9.9"`, true},
		{"an address is a network of one", `"192.0.2.7"`, `"192.0.2.7"`, true},
		{"and not of two", `"192.0.2.7"`, `"192.0.2.8"`, false},
		{"everything", `"0.0.0.0/0"`, `"203.0.113.1"`, true},
		{"everything of IPv4 is nothing of IPv6", `"0.0.0.0/0"`, `"::1"`, false},
		{"nor the other way round", `"::/0"`, `"1.2.3.4"`, false},
		{"IPv6", `"2001:db8::/32"`, `"2001:db8:ffff::1"`, true},
		{"IPv6 outside", `"2001:db8::/32"`, `"2001:db9::"`, false},
		{"IPv6 in capitals and long", `"2001:DB8::/32"`, `"2001:0DB8:0000:0000:0000:0000:0000:0001"`, true},
		{"a mapped address is the IPv4 address", `"10.0.0.0/8"`, `"::ffff:10.1.2.3"`, true},
		{"a mapped network is the IPv4 network", `"::ffff:10.0.0.0/104"`, `"10.1.2.3"`, true},
		{"a mapped single address too", `"::ffff:10.1.2.3"`, `"10.1.2.3"`, true},
		{"a zone is ignored", `"fe80::/10"`, `"fe80::1%eth0"`, true},
		{"a port is ignored", `"10.0.0.0/8"`, `"10.1.2.3:443"`, true},
		{"a port of IPv6 too", `"::1"`, `"[::1]:443"`, true},
		{"brackets alone too", `"::1"`, `"[::1]"`, true},
		{"blanks are ignored", `" 10.0.0.0/8 "`, `" 10.1.2.3 "`, true},
		{"one network of a list is enough", `["192.0.2.0/24","10.0.0.0/8"]`, `"10.1.2.3"`, true},
		{"families can be mixed", `["10.0.0.0/8","2001:db8::/32"]`, `"2001:db8::1"`, true},
		{"networks of a list may overlap", `["10.0.0.0/8","10.1.0.0/16","10.2.3.4"]`, `"10.200.0.1"`, true},
		{"between two networks", `["10.0.0.0/16","10.2.0.0/16"]`, `"10.1.0.0"`, false},
		{"one address of a list is enough", `"10.0.0.0/8"`, `["1.1.1.1","10.1.2.3"]`, true},
		{"a list without one", `"10.0.0.0/8"`, `["1.1.1.1",10,null,["10.0.0.1"]]`, false},
		{"an empty list", `"10.0.0.0/8"`, `[]`, false},
		{"what is not an address is nowhere", `"0.0.0.0/0"`, `"somewhere"`, false},
		{"an address with leading zeros is none", `"10.0.0.0/8"`, `"010.0.0.1"`, false},
		{"numbers are not addresses", `"0.0.0.0/0"`, `167772161`, false},
		{"null is not an address", `"0.0.0.0/0"`, `null`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := verdict(program(t, "cidr/contains", tt.value), tt.property); got != sdk.Matches(tt.in) {
				t.Errorf("contains: %s", got)
			}
			if got := verdict(program(t, "cidr/not_contains", tt.value), tt.property); got != sdk.Matches(!tt.in) {
				t.Errorf("not_contains: %s", got)
			}
		})
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ value, pointer, says string }{
		{`"10.0.0.0/33"`, "", "not a network"},
		{`"office"`, "", "neither a network"},
		{`""`, "", "neither"},
		{`"10.0.0.0/8/8"`, "", "not a network"},
		{`"fe80::1%eth0"`, "", "neither"},
		{`"::ffff:10.0.0.0/8"`, "", "larger than all of IPv4"},
		{`["10.0.0.0/8","10.0.0.0/-1"]`, "/1", "not a network"},
		{`7`, "", "want a network"},
	} {
		_, err := cidr.Matcher{}.Compile("cidr/contains", json.RawMessage(tt.value))
		e := sdk.AsError(err)
		if e == nil || !strings.Contains(e.Message, tt.says) || e.Pointer != tt.pointer {
			t.Errorf("%s: %+v", tt.value, e)
		}
	}
}

func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	for _, o := range (cidr.Matcher{}).Operators() {
		for _, e := range o.Examples {
			if got := verdict(program(t, o.ID, string(e.Value)), string(e.Property)); got != e.Result {
				t.Errorf("%s %s %s: %s", o.ID, e.Value, e.Property, got)
			}
		}
	}
}

// TestListsAnswerAsTheirNetworksDo compares the table of a list with asking one
// network after the other.
func TestListsAnswerAsTheirNetworksDo(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var prefixes []netip.Prefix
		var list []string
		for range 1 + random.IntN(20) {
			a := netip.AddrFrom4([4]byte{10, byte(random.IntN(4)), byte(random.IntN(4)), byte(random.IntN(256))})
			p := netip.PrefixFrom(a, 14+random.IntN(19))
			prefixes, list = append(prefixes, p), append(list, p.String())
		}
		value, _ := json.Marshal(list)
		p := program(t, "cidr/contains", string(value))
		for range 50 {
			a := netip.AddrFrom4([4]byte{10, byte(random.IntN(5)), byte(random.IntN(5)), byte(random.IntN(256))})
			want := false
			for _, prefix := range prefixes {
				want = want || prefix.Contains(a)
			}
			if got := verdict(p, `"`+a.String()+`"`); got != sdk.Matches(want) {
				t.Fatalf("%s in %s: %s", a, value, got)
			}
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`"10.0.0.0/8"`, `"10.1.2.3"`)
	f.Add(`["::/0","::ffff:1.2.3.4/100"]`, `["[::1]:80"]`)
	f.Fuzz(func(t *testing.T, value, property string) {
		p, err := cidr.Matcher{}.Compile("cidr/contains", json.RawMessage(value))
		if err == nil && json.Valid([]byte(property)) {
			if v := verdict(p, property); v != sdk.Match && v != sdk.NoMatch {
				t.Errorf("%s", v)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p := program(b, "cidr/contains", `["10.0.0.0/8","192.0.2.0/24","2001:db8::/32"]`)
	in := &sdk.Input{Value: json.RawMessage(`"10.1.2.3"`)}
	b.ReportAllocs()
	for b.Loop() {
		p.Match(in)
	}
}
