package sdk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// HTTPOptions limit the addresses of an HTTPClient. The zero value allows public
// addresses only, follows no redirect and times out after ten seconds.
type HTTPOptions struct {
	// Timeout is for the whole exchange, the body included; 0 is ten seconds.
	Timeout time.Duration
	// AllowNetworks are address ranges that may be reached although they are not
	// public. For an IPv4 range write it as one: "10.1.0.0/16".
	AllowNetworks []netip.Prefix
	// AllowHosts are names, as they stand in the URL, that may be reached
	// wherever they lead: "hooks.internal", or "*.corp.example" for all names
	// under one. An address is a name too. With a port, as in
	// "hooks.internal:8443", only that port may be reached so; without one, all.
	AllowHosts []string
	// Ports are the ports that may be reached; none means all.
	Ports []uint16
	// MaxRedirects is how many redirects are followed. With 0 an answer that
	// redirects is returned unchanged. A redirect never leads from https to http,
	// and never to an address that is not public, whatever is allowed above.
	MaxRedirects int
	// UseProxy takes the proxy from HTTPS_PROXY, HTTP_PROXY and NO_PROXY. It is
	// then the proxy that resolves names, so the proxy must keep internal
	// addresses out; only addresses in URLs are still checked here.
	UseProxy bool
	// TLS is for certificates of one's own; may be nil.
	TLS *tls.Config
}

const (
	defaultHTTPTimeout = 10 * time.Second
	connectTimeout     = 5 * time.Second
	maxHeaderBytes     = 64 << 10
)

// HTTPClient returns a client for URLs from untrusted configuration. The address is
// checked when the connection is made, after the name was resolved, so a name
// that resolves differently later does not help. Private, loopback, link-local, multicast
// and reserved addresses of IPv4 and IPv6 are refused, those of metadata services
// among them, and so are IPv4 addresses inside IPv6 ones. A refusal is an error
// of the config, with the code "address_refused"; AsError finds it.
func HTTPClient(o HTTPOptions) *http.Client {
	g := &guardedTransport{first: newTransport(o, newGuard(o))}
	if o.MaxRedirects > 0 {
		strict := o
		strict.AllowHosts, strict.AllowNetworks = nil, nil
		g.redirected = newTransport(strict, newGuard(strict))
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = defaultHTTPTimeout
	}
	return &http.Client{Transport: g, Timeout: timeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case o.MaxRedirects <= 0:
			return http.ErrUseLastResponse
		case len(via) > o.MaxRedirects:
			return fmt.Errorf("more than %d redirects", o.MaxRedirects)
		case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
			return refusal("a redirect from https to %s", req.URL.Scheme)
		}
		return nil
	}}
}

// Dialer returns a function that connects as an HTTPClient with the same options
// does, for protocols other than HTTP.
func Dialer(o HTTPOptions) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newGuard(o).dial
}

// ReadBody reads and closes the body of an answer. A body of more than limit
// bytes, after decompression, is an error, and so is one that breaks off.
func ReadBody(resp *http.Response, limit int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case int64(len(body)) > limit:
		return nil, &Error{
			Class: ClassPermanent, Code: "answer_too_large", Source: SourceDownstream,
			Message: fmt.Sprintf("the answer has more than %d bytes", limit),
		}
	}
	return body, nil
}

// guardedTransport sends what follows a redirect through another transport, with
// connections of its own.
type guardedTransport struct {
	first, redirected *http.Transport
}

// RoundTrip sends one request.
func (t *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Response != nil && t.redirected != nil {
		return t.redirected.RoundTrip(req)
	}
	return t.first.RoundTrip(req)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *guardedTransport) CloseIdleConnections() {
	t.first.CloseIdleConnections()
	if t.redirected != nil {
		t.redirected.CloseIdleConnections()
	}
}

func newTransport(o HTTPOptions, g *addressGuard) *http.Transport {
	t := &http.Transport{
		DialContext: g.dial, TLSClientConfig: o.TLS.Clone(), ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: 90 * time.Second, ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost: 8, MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if o.UseProxy {
		t.Proxy = g.proxy
	}
	return t
}

// addressGuard decides where connections may go.
type addressGuard struct {
	check *ssrf.Guardian
	hosts []allowedHost
	ports []string
	bound *net.Dialer // calls check for each address
	free  *net.Dialer

	proxies sync.Map // address of a proxy in use
}

func newGuard(o HTTPOptions) *addressGuard {
	var v4, v6 []netip.Prefix
	for _, p := range o.AllowNetworks {
		if p = p.Masked(); p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	g := &addressGuard{check: ssrf.New(ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...), ssrf.WithPorts(o.Ports...))}
	for _, host := range o.AllowHosts {
		g.hosts = append(g.hosts, newAllowedHost(host))
	}
	for _, port := range o.Ports {
		g.ports = append(g.ports, strconv.Itoa(int(port)))
	}
	g.bound = &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second, Control: g.control}
	g.free = &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return g
}

// control runs when the address is resolved and before it is connected to.
func (g *addressGuard) control(network, address string, raw syscall.RawConn) error {
	err := g.check.Safe(network, address, raw)
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return refusal("%s is not a public address", address)
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return refusal("the port of %s is not allowed", address)
	case err != nil:
		return refusal("%s %s", network, address)
	}
	return nil
}

func (g *addressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, known := g.proxies.Load(address); known || g.trusts(host, port) {
		if len(g.ports) > 0 && !known && !slices.Contains(g.ports, port) {
			return nil, refusal("the port of %s is not allowed", address)
		}
		return g.free.DialContext(ctx, network, address)
	}
	return g.bound.DialContext(ctx, network, address)
}

// allowedHost is a name that may lead anywhere, at one port or, for "", at all.
type allowedHost struct{ name, port string }

func newAllowedHost(text string) allowedHost {
	name, port, err := net.SplitHostPort(text)
	if err != nil {
		name, port = text, ""
	}
	return allowedHost{strings.ToLower(strings.Trim(strings.TrimSuffix(name, "."), "[]")), port}
}

// trusts reports whether the name is one that may lead anywhere at the port.
func (g *addressGuard) trusts(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(g.hosts, func(allowed allowedHost) bool {
		if allowed.port != "" && allowed.port != port {
			return false
		}
		if suffix, all := strings.CutPrefix(allowed.name, "*"); all {
			return strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix) && host != suffix
		}
		return host == allowed.name
	})
}

// environmentProxy reads the environment once in a process.
var environmentProxy = http.ProxyFromEnvironment

// proxy finds the proxy for a request. What we would connect to ourselves is
// checked when we do; an address that the proxy connects to is checked here.
func (g *addressGuard) proxy(req *http.Request) (*url.URL, error) {
	via, err := environmentProxy(req)
	if err != nil || via == nil {
		return nil, err
	}
	host := req.URL.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && !g.trusts(host, proxyPort(req.URL)) {
		if err := g.check.SafeAddr(ip.Unmap()); err != nil {
			return nil, refusal("%s is not a public address", host)
		}
	}
	g.proxies.Store(net.JoinHostPort(via.Hostname(), proxyPort(via)), true)
	return via, nil
}

func proxyPort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	switch u.Scheme {
	case "https":
		return "443"
	case "socks5", "socks5h":
		return "1080"
	default:
		return "80"
	}
}

// refusal is the error of a connection that is not made.
func refusal(format string, args ...any) *Error {
	e := Errorf(ClassConfig, "address_refused", format, args...)
	e.Source = SourcePlugin
	return e
}

// FromHTTP returns nil for an answer with a 2xx status, and otherwise an error
// of the class that the status stands for, with Retry-After and the start of
// the body. It does not close the body.
//
// 429, and 503 with a Retry-After, are Throttled; 408, 425 and the other 5xx
// are Transient; 401, 403 and 404 are errors of the config; everything else is
// Permanent.
func FromHTTP(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	e := &Error{
		Class: ClassPermanent, Code: fmt.Sprintf("http_%d", resp.StatusCode), Source: SourceDownstream,
		Message: message(resp), RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && e.RetryAfter > 0:
		e.Class = ClassThrottled
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
		e.Class = ClassTransient
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		e.Class = ClassConfig
	}
	return e
}

// message is the status and the first line of the body.
func message(resp *http.Response) string {
	if resp.Body == nil {
		return resp.Status
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text), "")), "\n")
	if line == "" {
		return resp.Status
	}
	return resp.Status + ": " + line
}

// retryAfter reads seconds or a date; 0 for neither and for the past.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return time.Duration(max(0, seconds)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
