// Package forwarded derives the addresses of client and server from a request
// that proxies may have forwarded.
//
// Any client can send X-Forwarded headers. They count only if the sender of the
// request is a trusted proxy, and of the addresses in X-Forwarded-For only the
// last one that is no trusted proxy: a proxy appends to the header, so
// everything in front of that address is the claim of the client. A proxy may
// append to the last header line or add a line: both are read.
package forwarded

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// Networks are the senders whose X-Forwarded headers are trusted.
type Networks []netip.Prefix

var namedNetworks = map[string][]string{
	"loopback": {"127.0.0.0/8", "::1/128"},
	"private":  {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10"},
}

// ParseNetworks parses addresses, networks (10.0.0.0/8), and the words loopback
// and private.
func ParseNetworks(names []string) (Networks, error) {
	var out Networks
	for _, name := range names {
		for _, text := range networksOf(name) {
			p, err := parsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("trusted_proxies: %q is no address, no network, and neither loopback nor private", name)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func networksOf(name string) []string {
	if known, ok := namedNetworks[strings.ToLower(strings.TrimSpace(name))]; ok {
		return known
	}
	return []string{strings.TrimSpace(name)}
}

func parsePrefix(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// Contains reports whether a is in one of the networks.
func (n Networks) Contains(a netip.Addr) bool {
	for _, p := range n {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Sender returns the address that sent the request: the client or the last
// proxy. It is the zero Addr on a Unix socket.
func Sender(ctx *fasthttp.RequestCtx) netip.Addr {
	sender, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return sender.Unmap()
}

// Client returns the address of the client: the sender of the request or, if
// that is a trusted proxy, the last address in X-Forwarded-For that is not one.
// It is the zero Addr if the address is unknown.
func (n Networks) Client(ctx *fasthttp.RequestCtx) netip.Addr {
	sender := Sender(ctx)
	if !n.Contains(sender) {
		return sender
	}
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)
	if len(lines) == 0 {
		lines = ctx.Request.Header.PeekAll("X-Real-Ip")
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for chain := lines[i]; len(chain) > 0; {
			last := chain
			if j := bytes.LastIndexByte(chain, ','); j >= 0 {
				chain, last = chain[:j], chain[j+1:]
			} else {
				chain = nil
			}
			hop, ok := parseHop(string(last))
			if !ok {
				return sender
			}
			if sender = hop; !n.Contains(hop) {
				return hop
			}
		}
	}
	return sender
}

// parseHop parses an address of X-Forwarded-For, which some proxies write with
// a port.
func parseHop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

// BaseURL returns the URL by which the client reached the server: scheme, host
// and the prefix that a proxy removed, without a slash at the end. scheme and
// address are those of the server's own listener.
func (n Networks) BaseURL(ctx *fasthttp.RequestCtx, scheme, address string) string {
	host, prefix := string(ctx.Request.Host()), n.Prefix(ctx)
	if n.Contains(Sender(ctx)) {
		h := &ctx.Request.Header
		if s := strings.ToLower(firstOf(h.Peek(fasthttp.HeaderXForwardedProto))); s == "https" || s == "http" {
			scheme = s
		}
		if h := firstOf(h.Peek(fasthttp.HeaderXForwardedHost)); validHost(h) {
			host = h
		}
	}
	if !validHost(host) {
		host = address
	}
	return scheme + "://" + host + prefix
}

// Prefix returns the prefix of the path that a trusted proxy removed, without a slash
// at the end; "" for none.
func (n Networks) Prefix(ctx *fasthttp.RequestCtx) string {
	raw := ctx.Request.Header.Peek("X-Forwarded-Prefix")
	if len(raw) == 0 || !n.Contains(Sender(ctx)) {
		return ""
	}
	if p := strings.TrimRight(firstOf(raw), "/"); validPrefix(p) {
		return p
	}
	return ""
}

func firstOf(list []byte) string {
	first, _, _ := strings.Cut(string(list), ",")
	return strings.TrimSpace(first)
}

func validHost(h string) bool {
	return h != "" && len(h) <= 255 && strings.IndexFunc(h, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
	}) < 0
}

func validPrefix(p string) bool {
	return len(p) > 1 && p[0] == '/' && !strings.HasPrefix(p, "//") && strings.IndexFunc(p, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/.-_~", r)
	}) < 0
}
