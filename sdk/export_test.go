package sdk

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Dial serves p in this process and returns a connection to it: what a host
// sees, without a process.
func Dial(t testing.TB, p Plugin) *grpc.ClientConn {
	t.Helper()
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	srv := newServer(p)
	srv.redirect.Do(func() {}) // the test keeps its output
	g := srv.grpcServer(nil)
	srv.register(g)
	lis := bufconn.Listen(1 << 20)
	go func() { _ = g.Serve(lis) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Check is what Serve finds wrong before it serves.
func Check(p Plugin) error { return p.check() }

// Trusts reports whether allowed names let a host lead anywhere.
func Trusts(allowed []string, host string) bool {
	return newGuard(HTTPOptions{AllowHosts: allowed}).trusts(host, "443")
}

// SetEnvironmentProxy makes u the proxy of the environment, until undo.
func SetEnvironmentProxy(u *url.URL) (undo func()) {
	old := environmentProxy
	environmentProxy = http.ProxyURL(u)
	return func() { environmentProxy = old }
}
