package forwarded_test

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/forwarded"
)

// A header that the client sends does not choose its address, whether the proxy
// appends to it or adds a line of its own.
func TestClient(t *testing.T) {
	t.Parallel()
	trusted, err := forwarded.ParseNetworks([]string{"loopback", "10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		sender string
		lines  []string
		want   string
	}{
		"no proxy":                             {"192.0.2.1", nil, "192.0.2.1"},
		"a client that claims an address":      {"192.0.2.1", []string{"198.51.100.9"}, "192.0.2.1"},
		"a proxy":                              {"10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a proxy that appends to a claim":      {"10.0.0.1", []string{"198.51.100.9, 192.0.2.1"}, "192.0.2.1"},
		"a proxy that adds a line to a claim":  {"10.0.0.1", []string{"198.51.100.9", "192.0.2.1"}, "192.0.2.1"},
		"two proxies":                          {"127.0.0.1", []string{"198.51.100.9", "192.0.2.1, 10.0.0.7"}, "192.0.2.1"},
		"two proxies with a line each":         {"127.0.0.1", []string{"198.51.100.9, 192.0.2.1", "10.0.0.7"}, "192.0.2.1"},
		"a trusted chain without an end":       {"127.0.0.1", []string{"10.0.0.9"}, "10.0.0.9"},
		"no address in the header":             {"10.0.0.1", []string{"unknown"}, "10.0.0.1"},
		"a proxy without the header":           {"10.0.0.1", nil, "10.0.0.1"},
		"an address with a port":               {"10.0.0.1", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		"a mapped address and a mapped sender": {"::ffff:10.0.0.1", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := new(fasthttp.RequestCtx)
			ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.ParseIP(tc.sender), Port: 1}, nil)
			for _, l := range tc.lines {
				ctx.Request.Header.Add("X-Forwarded-For", l)
			}
			if got := trusted.Client(ctx).String(); got != tc.want {
				t.Errorf("client %s, want %s", got, tc.want)
			}
		})
	}
}
