package cidr

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// span is all addresses from first to last, of one family.
type span struct{ first, last netip.Addr }

// set is spans in order that do not touch; IPv4 comes before IPv6.
type set []span

// network reads a network or a single address. IPv4 inside IPv6 becomes IPv4.
func network(text string) (span, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return span{}, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor an address", text)
		}
		a = a.Unmap()
		return span{a, a}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return span{}, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or 2001:db8::/32", text)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return span{}, fmt.Errorf("%q: a network that is larger than all of IPv4 must be written without the ::ffff", text)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return span{p.Masked().Addr(), last(p)}, nil
}

// last is the largest address of a network.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// tidy sorts spans and makes one of those that overlap.
func (s set) tidy() set {
	slices.SortFunc(s, func(a, b span) int { return a.first.Compare(b.first) })
	out := s[:0]
	for _, next := range s {
		if n := len(out); n > 0 && next.first.Compare(out[n-1].last) <= 0 && next.first.BitLen() == out[n-1].last.BitLen() {
			if next.last.Compare(out[n-1].last) > 0 {
				out[n-1].last = next.last
			}
			continue
		}
		out = append(out, next)
	}
	return out
}

func (s set) holds(a netip.Addr) bool {
	at, found := slices.BinarySearchFunc(s, a, func(x span, a netip.Addr) int { return x.first.Compare(a) })
	if found {
		return true
	}
	return at > 0 && s[at-1].last.BitLen() == a.BitLen() && a.Compare(s[at-1].last) <= 0
}

// holdsAny reports whether a property is an address in the set, or a list with
// one.
func (s set) holdsAny(in *sdk.Input) bool {
	if text, ok := in.String(); ok {
		a, ok := address(text)
		return ok && s.holds(a)
	}
	var list []json.RawMessage
	if len(in.Value) == 0 || in.Value[0] != '[' || json.Unmarshal(in.Value, &list) != nil {
		return false
	}
	return slices.ContainsFunc(list, func(item json.RawMessage) bool { return item[0] == '"' && s.holdsAny(&sdk.Input{Value: item}) })
}

// address reads an address, with or without a port and a zone.
func address(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	a, err := netip.ParseAddr(text)
	if err != nil {
		var withPort netip.AddrPort
		if withPort, err = netip.ParseAddrPort(text); err == nil {
			a = withPort.Addr()
		}
	}
	if err != nil {
		bare, bracketed := strings.CutPrefix(text, "[")
		if bare, closed := strings.CutSuffix(bare, "]"); bracketed && closed {
			a, err = netip.ParseAddr(bare)
		}
	}
	return a.WithZone("").Unmap(), err == nil
}
