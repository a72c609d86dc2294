// Package post is shared by the notifiers that use HTTP: options, a client limited to
// allowed addresses, one POST of JSON with classified errors, and texts of limited
// length.
package post

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Options are the options of every notifier that posts; embed them in a config.
type Options struct {
	Timeout       time.Duration  `json:"timeout" min:"100ms" max:"1m" doc:"How long to wait for an answer."`
	AllowHosts    []string       `json:"allow_hosts" doc:"Hosts, beside the service's own, that an action may name and that may lead to private addresses: host, host:port or host:port/path. Without a port, the default port of the scheme."`
	AllowNetworks []netip.Prefix `json:"allow_networks" doc:"Private networks that may be reached, such as 10.0.0.0/8."`
}

// Defaults returns the default options.
func Defaults() Options { return Options{Timeout: 10 * time.Second} }

// Client returns a client for the configured address: it goes to public addresses
// and to those allowed, at any port.
func (o Options) Client() *http.Client {
	var names []string
	for _, text := range o.AllowHosts {
		names = append(names, parseAllowed(text).name)
	}
	return sdk.HTTPClient(sdk.HTTPOptions{Timeout: o.Timeout, AllowHosts: names, AllowNetworks: o.AllowNetworks})
}

// NamedClient returns a client for addresses that actions name: it goes to public
// addresses and to the hosts allowed, each at its port only.
func (o Options) NamedClient() *http.Client {
	var bound []string
	for _, text := range o.AllowHosts {
		a := parseAllowed(text)
		for _, port := range a.ports() {
			bound = append(bound, net.JoinHostPort(a.name, port))
		}
	}
	return sdk.HTTPClient(sdk.HTTPOptions{Timeout: o.Timeout, AllowHosts: bound, AllowNetworks: o.AllowNetworks})
}

// URL checks a URL that is posted to: http or https, with a host. hosts are the
// service's own, "*." before one meaning all under it; with any, only those, the
// configured one and AllowHosts will do, so that the
// author of an action cannot post elsewhere.
func (o Options) URL(text, configured string, hosts ...string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("this is not an http or https URL")
	}
	if len(hosts) == 0 {
		return nil
	}
	if c, err := url.Parse(configured); err == nil && c.Host != "" && c.Host == u.Host && c.Scheme == u.Scheme {
		return nil
	}
	name := strings.ToLower(u.Hostname())
	if u.Scheme == "https" && slices.ContainsFunc(hosts, func(h string) bool { return covers(h, name) }) || o.allows(u) {
		return nil
	}
	return fmt.Errorf("messages go to https://%s, not to %s", hosts[0], name)
}

// Named checks a URL that an action names. A host of AllowHosts is reached at its
// port and below its path only; other hosts are checked when the connection is
// made.
func (o Options) Named(text string) error {
	if err := o.URL(text, ""); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("this is not an http or https URL")
	}
	name := strings.ToLower(u.Hostname())
	listed := slices.ContainsFunc(o.AllowHosts, func(h string) bool { return covers(parseAllowed(h).name, name) })
	if listed && !o.allows(u) {
		return errors.New("the host is allowed at another port or path only")
	}
	return nil
}

// allows reports whether an entry of AllowHosts covers the URL.
func (o Options) allows(u *url.URL) bool {
	return slices.ContainsFunc(o.AllowHosts, func(h string) bool { return parseAllowed(h).covers(u) })
}

// allowedHost is one entry of AllowHosts.
type allowedHost struct{ name, port, path string }

func parseAllowed(text string) allowedHost {
	host, path, _ := strings.Cut(text, "/")
	a := allowedHost{name: host}
	if name, port, err := net.SplitHostPort(host); err == nil {
		a.name, a.port = name, port
	}
	a.name = strings.ToLower(strings.Trim(strings.TrimSuffix(a.name, "."), "[]"))
	if path != "" {
		a.path = "/" + path
	}
	return a
}

func (a allowedHost) ports() []string {
	if a.port == "" {
		return []string{"80", "443"}
	}
	return []string{a.port}
}

func (a allowedHost) covers(u *url.URL) bool {
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	port := u.Port()
	if port == "" {
		port = usual
	}
	want := a.port
	if want == "" {
		want = usual
	}
	if !covers(a.name, strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))) || port != want {
		return false
	}
	clean := path.Clean("/" + u.Path)
	return a.path == "" || clean == strings.TrimSuffix(a.path, "/") || strings.HasPrefix(clean, strings.TrimSuffix(a.path, "/")+"/")
}

func covers(pattern, name string) bool {
	if suffix, all := strings.CutPrefix(pattern, "*"); all {
		return strings.HasSuffix(name, suffix) && name != suffix
	}
	return pattern == name
}

// Answer is the answer of a service to an accepted POST.
type Answer struct {
	Header http.Header
	Body   []byte // at most 64 KiB
}

const maxAnswer = 64 << 10

// JSON posts body to a URL. The error of an answer other than 2xx is classified:
// 429 and 503 with a time are Throttled, other 5xx and no answer Transient, 401,
// 403, 404, 405, 410 and a redirect are the config's fault, the rest is Permanent.
// No error holds the URL, which is a secret in most services.
func JSON(ctx context.Context, c *http.Client, to string, header http.Header, body any) (Answer, error) {
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return Answer{}, sdk.Permanent(err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, sdk.ConfigError("/url", errors.New("this is not a URL"))
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "guidon-notifier/1.0.0")
	resp, err := c.Do(req)
	if err != nil {
		return Answer{}, unreachable(err)
	}
	if err := sdk.FromHTTP(resp); err != nil {
		_ = resp.Body.Close()
		return Answer{Header: resp.Header}, endpoint(resp, err)
	}
	// It was taken. An answer that breaks off or is too long is not worth a
	// second message.
	answer, _ := sdk.ReadBody(resp, maxAnswer)
	return Answer{resp.Header, answer}, nil
}

// endpoint makes errors of the endpoint errors of the config.
func endpoint(resp *http.Response, err error) error {
	e := sdk.AsError(err)
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400, code == http.StatusMethodNotAllowed, code == http.StatusGone, e.Class == sdk.ClassConfig:
		out := *e
		out.Class, out.Pointer = sdk.ClassConfig, "/url"
		return &out
	}
	return e
}

// Own is the error of a message to the address of the config. What the service
// refuses there may be right again in a minute, after a deployment or when a
// token was renewed, so it is tried again until the message expires, and stops
// nothing else. A destination that an action names has no such credit.
func Own(m *sdk.Notification, err error) error {
	e := sdk.AsError(err)
	if e == nil || m.Destination != "" || e.Class != sdk.ClassConfig || !strings.HasPrefix(e.Code, "http_") {
		return err
	}
	out := *e
	out.Class, out.Pointer = sdk.ClassTransient, ""
	return &out
}

// unreachable is the error of a request that had no answer.
func unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			return sdk.Errorf(sdk.ClassTransient, "timeout", "no answer in time").From(sdk.SourceDownstream)
		}
		err = wrapped.Err
	}
	e := sdk.AsError(err)
	if e.Class == sdk.ClassConfig && e.Pointer == "" {
		out := *e
		out.Pointer = "/url"
		return &out
	}
	return e
}

// concealed returns the error of a destination that an action names without what
// it would tell the author: the body of the answer, addresses behind names and the
// words of the resolver. Class, code and pause stay.
func concealed(err error) error {
	e := sdk.AsError(err)
	if e == nil {
		return nil
	}
	if status, ok := strings.CutPrefix(e.Code, "http_"); ok {
		out := sdk.Errorf(e.Class, e.Code, "the destination answered %s", status).From(sdk.SourceDownstream)
		out.Pointer, out.RetryAfter = e.Pointer, e.RetryAfter
		return out
	}
	out := sdk.Errorf(e.Class, "unreachable", "the destination is not reachable or not allowed").From(sdk.SourceDownstream)
	out.Pointer = e.Pointer
	return out
}

// Throttle returns a throttling error with the pause of a service that reports it in a
// header of its own.
func Throttle(err error, after time.Duration) error {
	e, ok := errors.AsType[*sdk.Error](err)
	if !ok || e.Class != sdk.ClassThrottled || after <= 0 {
		return err
	}
	out := *e
	out.RetryAfter = after
	return &out
}

// Seconds reads a number of seconds with a fraction, as headers have it; 0 for
// anything else.
func Seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// Cut returns s, or its beginning and an ellipsis when it has more than n
// characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// Segments returns the parts of the message, truncated to most characters in all, with
// the number of suppressed messages at the end.
func Segments(n *sdk.Notification, most int) []sdk.Segment {
	parts := n.Segments
	if len(parts) == 0 {
		parts = []sdk.Segment{{Kind: sdk.SegmentText, Value: n.Text}}
	}
	more := ""
	if n.Suppressed > 0 {
		more = fmt.Sprintf(" (and %d more)", n.Suppressed)
	}
	left := most - len(more)
	out := make([]sdk.Segment, 0, len(parts)+1)
	for _, p := range parts {
		if left <= 1 {
			break
		}
		p.Value = Cut(p.Value, left)
		left -= len([]rune(p.Value))
		out = append(out, p)
	}
	if more != "" {
		out = append(out, sdk.Segment{Kind: sdk.SegmentText, Value: more})
	}
	return out
}

// Plain is the message without any markup, cut to n characters.
func Plain(n *sdk.Notification, most int) string {
	var out strings.Builder
	for _, p := range Segments(n, most) {
		out.WriteString(p.Value)
	}
	return out.String()
}
