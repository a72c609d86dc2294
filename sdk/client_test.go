package sdk_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// refused reports whether the error is that of an address that may not be
// reached.
func refused(err error) bool {
	e := sdk.AsError(err)
	return e != nil && e.Code == "address_refused" && e.Class == sdk.ClassConfig
}

func TestAddressesThatAreNotPublicAreRefusedBeforeAConnectionIsMade(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, host string }{
		{"loopback", "127.0.0.1"},
		{"the rest of the loopback network", "127.8.9.1"},
		{"this host", "0.0.0.0"},
		{"private, class A", "10.1.2.3"},
		{"private, class B", "172.16.0.1"},
		{"private, class C", "192.168.1.1"},
		{"shared by a carrier", "100.64.0.1"},
		{"link local, the metadata service", "169.254.169.254"},
		{"multicast", "224.0.0.1"},
		{"reserved", "240.0.0.1"},
		{"broadcast", "255.255.255.255"},
		{"benchmarks", "198.18.0.1"},
		{"IPv6 loopback", "[::1]"},
		{"IPv6 unspecified", "[::]"},
		{"IPv6 private", "[fd00::1]"},
		{"IPv6 link local", "[fe80::1]"},
		{"IPv6 link local with a zone", "[fe80::1%25lo]"},
		{"IPv6 metadata service", "[fd00:ec2::254]"},
		{"IPv6 site local", "[fec0::1]"},
		{"IPv6 multicast", "[ff02::1]"},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]"},
		{"IPv4 in IPv6, in hexadecimal", "[::ffff:7f00:1]"},
		{"IPv4 compatible", "[::127.0.0.1]"},
		{"NAT64 of loopback", "[64:ff9b::7f00:1]"},
		{"NAT64 of the metadata service", "[64:ff9b::a9fe:a9fe]"},
		{"local NAT64", "[64:ff9b:1::a00:1]"},
		{"6to4 of a private address", "[2002:a00:1::]"},
		{"Teredo", "[2001:0:a00:1::]"},
		{"documentation", "[2001:db8::1]"},
		{"a name that leads to loopback", "localhost"},
	}
	client := sdk.HTTPClient(sdk.HTTPOptions{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp, err := client.Get("http://" + tt.host + ":1/")
			if err == nil {
				_ = resp.Body.Close()
				t.Fatal("reached")
			}
			// Without IPv6 the system may refuse first.
			if !refused(err) && !strings.Contains(err.Error(), "network is unreachable") {
				t.Errorf("%v", err)
			}
		})
	}
}

// served starts a server on a loopback address and returns its URL.
func served(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func port(t *testing.T, u *url.URL) uint16 {
	t.Helper()
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestWhatTheOperatorAllowsIsReached(t *testing.T) {
	t.Parallel()
	u := served(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	open := port(t, u)
	named := "http://localhost:" + u.Port()
	tests := []struct {
		name    string
		url     string
		o       sdk.HTTPOptions
		reached bool
	}{
		{"nothing is allowed", u.String(), sdk.HTTPOptions{}, false},
		{"its network is", u.String(), sdk.HTTPOptions{AllowNetworks: loopback}, true},
		{"a network written with bits of a host", u.String(), sdk.HTTPOptions{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}, true},
		{"its address is", u.String(), sdk.HTTPOptions{AllowHosts: []string{"127.0.0.1"}}, true},
		{"another network is", u.String(), sdk.HTTPOptions{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, false},
		{"its name is", named, sdk.HTTPOptions{AllowHosts: []string{"LOCALHOST."}}, true},
		{"another name is", named, sdk.HTTPOptions{AllowHosts: []string{"host"}}, false},
		{"names under a name are, and this is it", named, sdk.HTTPOptions{AllowHosts: []string{"*.localhost"}}, false},
		{"a star alone allows nothing", named, sdk.HTTPOptions{AllowHosts: []string{"*"}}, false},
		{"its port is", u.String(), sdk.HTTPOptions{AllowNetworks: loopback, Ports: []uint16{open}}, true},
		{"another port is", u.String(), sdk.HTTPOptions{AllowNetworks: loopback, Ports: []uint16{443}}, false},
		{"its name is, but another port", named, sdk.HTTPOptions{AllowHosts: []string{"localhost"}, Ports: []uint16{443}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := sdk.HTTPClient(tt.o)
			defer client.CloseIdleConnections()
			resp, err := client.Get(tt.url)
			if !tt.reached {
				if !refused(err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if body, err := sdk.ReadBody(resp, 5); err != nil || string(body) != "hello" {
				t.Errorf("%q %v", body, err)
			}
		})
	}
}

func TestNamesUnderAnAllowedName(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"a.corp.example": true, "A.B.Corp.Example.": true, "corp.example": false, "evilcorp.example": false, ".corp.example": false, "a.corp.example.evil": false,
	} {
		if got := sdk.Trusts([]string{"*.corp.example"}, host); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var target *url.URL
	u := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/inside":
			http.Redirect(w, r, target.String()+"/end", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			_, _ = w.Write([]byte("end"))
		}
	})
	target = u

	plain := sdk.HTTPClient(sdk.HTTPOptions{AllowNetworks: loopback})
	defer plain.CloseIdleConnections()
	resp, err := plain.Get(u.String() + "/inside")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("not followed by default: %s", resp.Status)
	}

	// Allowed addresses apply to configured URLs, not to redirects of a server.
	following := sdk.HTTPClient(sdk.HTTPOptions{AllowNetworks: loopback, MaxRedirects: 3})
	defer following.CloseIdleConnections()
	for _, path := range []string{"/inside", "/loop"} {
		resp, err = following.Get(u.String() + path)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !refused(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRedirectsThatAreFollowed(t *testing.T) {
	t.Parallel()
	client := sdk.HTTPClient(sdk.HTTPOptions{MaxRedirects: 2})
	to := func(text string) *http.Request {
		req, err := http.NewRequest(http.MethodGet, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	one := []*http.Request{to("https://a.example")}
	if err := client.CheckRedirect(to("https://b.example"), one); err != nil {
		t.Error(err)
	}
	if err := client.CheckRedirect(to("http://b.example"), one); !refused(err) {
		t.Errorf("from https to http: %v", err)
	}
	three := append(one, to("https://b.example"), to("https://c.example"))
	if err := client.CheckRedirect(to("https://d.example"), three); err == nil || errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("the third: %v", err)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	bomb := new(bytes.Buffer)
	z := gzip.NewWriter(bomb)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	u := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
		case "/never":
			<-r.Context().Done()
		}
	})
	client := sdk.HTTPClient(sdk.HTTPOptions{AllowNetworks: loopback})
	defer client.CloseIdleConnections()
	resp, err := client.Get(u.String() + "/bomb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.ReadBody(resp, 1<<20); sdk.AsError(err).Code != "answer_too_large" {
		t.Errorf("a bomb: %v", err)
	}
	if _, err := client.Get(u.String() + "/headers"); err == nil {
		t.Error("a megabyte of headers was taken")
	}
	resp, err = client.Get(u.String() + "/short")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.ReadBody(resp, 1<<20); err == nil {
		t.Error("a body that breaks off was taken")
	}
	hasty := sdk.HTTPClient(sdk.HTTPOptions{AllowNetworks: loopback, Timeout: 50 * time.Millisecond})
	defer hasty.CloseIdleConnections()
	if _, err := hasty.Get(u.String() + "/never"); sdk.AsError(err).Class != sdk.ClassTransient {
		t.Errorf("a server that never answers: %v", err)
	}
}

func TestAProxyIsUsedOnlyWhenAskedFor(t *testing.T) {
	asked := make(chan string, 10)
	u := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		_, _ = w.Write([]byte("from the proxy"))
	})
	t.Cleanup(sdk.SetEnvironmentProxy(u))
	client := sdk.HTTPClient(sdk.HTTPOptions{UseProxy: true})
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://hooks.example/path")
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := sdk.ReadBody(resp, 100); string(body) != "from the proxy" {
		t.Errorf("%q", body)
	}
	if got := <-asked; got != "http://hooks.example/path" {
		t.Errorf("asked for %s", got)
	}
	for _, host := range []string{"10.0.0.1", "[::ffff:10.0.0.1]", "[fd00::1]"} {
		if _, err := client.Get("http://" + host + "/"); !refused(err) {
			t.Errorf("%s through the proxy: %v", host, err)
		}
	}
	other := sdk.HTTPClient(sdk.HTTPOptions{})
	if _, err := other.Get("http://10.0.0.1/"); !refused(err) {
		t.Errorf("%v", err)
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %s", <-asked)
	}
}

func TestTheDialerOfOtherProtocolsIsAsStrict(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := sdk.Dialer(sdk.HTTPOptions{})(ctx, "tcp", l.Addr().String()); !refused(err) {
		t.Errorf("%v", err)
	}
	conn, err := sdk.Dialer(sdk.HTTPOptions{AllowNetworks: loopback})(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := sdk.Dialer(sdk.HTTPOptions{})(ctx, "udp", "192.0.2.1:53"); !refused(err) {
		t.Errorf("another network: %v", err)
	}
}

func TestTheAddressOfAWebhookIsNotInTheError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // the port is closed now
	_, err = sdk.HTTPClient(sdk.HTTPOptions{AllowNetworks: loopback}).Post("http://"+address+"/T0/B0/hunter2?token=hunter2", "", nil)
	for _, e := range []*sdk.Error{sdk.AsError(err), sdk.AsError(sdk.Transient(err)), sdk.AsError(sdk.Permanent(err))} {
		if strings.Contains(e.Message, "hunter2") || !strings.Contains(e.Message, address) {
			t.Errorf("%q", e.Message)
		}
	}
	if _, err := sdk.HTTPClient(sdk.HTTPOptions{}).Get("http://a b/hunter2"); strings.Contains(sdk.AsError(err).Message, "hunter2") {
		t.Errorf("%q", sdk.AsError(err).Message)
	}
}
