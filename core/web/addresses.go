package web

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// proxies are the senders whose X-Forwarded headers are trusted.
type proxies []netip.Prefix

var namedNetworks = map[string][]string{
	"loopback": {"127.0.0.0/8", "::1/128"},
	"private":  {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10"},
}

func parseProxies(names []string) (proxies, error) {
	var out proxies
	for _, name := range names {
		for _, text := range append([]string{}, networksOf(name)...) {
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

func (p proxies) trust(a netip.Addr) bool {
	for _, n := range p {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// addresses derives the addresses of client and server from a request.
type addresses struct {
	siteURL   string
	proxies   proxies
	lifecycle *lifecycle
}

// clientIP implements Router.IP.
func (a *addresses) clientIP(c *fiber.Ctx) netip.Addr {
	sender, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	sender = sender.Unmap()
	if !a.proxies.trust(sender) {
		return sender
	}
	chain := c.Get(fiber.HeaderXForwardedFor)
	if chain == "" {
		chain = c.Get("X-Real-Ip")
	}
	for chain != "" {
		last := chain
		if i := strings.LastIndexByte(chain, ','); i >= 0 {
			chain, last = chain[:i], chain[i+1:]
		} else {
			chain = ""
		}
		hop, ok := parseHop(last)
		if !ok {
			return sender
		}
		if sender = hop; !a.proxies.trust(hop) {
			return hop
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

// baseURL returns the URL by which the client reached the server: scheme, host
// and the prefix that a proxy removed, without a slash at the end.
func (a *addresses) baseURL(c *fiber.Ctx) string {
	if a.siteURL != "" {
		return strings.TrimRight(a.siteURL, "/")
	}
	scheme, host, prefix := "http", string(c.Request().Host()), ""
	sender, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	if a.proxies.trust(sender.Unmap()) {
		if s := strings.ToLower(firstOf(c.Get(fiber.HeaderXForwardedProto))); s == "https" || s == "http" {
			scheme = s
		}
		if h := firstOf(c.Get(fiber.HeaderXForwardedHost)); validHost(h) {
			host = h
		}
		if p := strings.TrimRight(firstOf(c.Get("X-Forwarded-Prefix")), "/"); validPrefix(p) {
			prefix = p
		}
	}
	if !validHost(host) {
		host = a.lifecycle.address()
	}
	return scheme + "://" + host + prefix
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
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
