package web_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// Pages and routes for operators exist on the admin address only, and features of
// the public address do not exist there.
func TestAdminRoutesAreNotPublic(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry(), routesFunc(func(g *web.Router) {
		g.Admin("GET", "/api/plugins", "plugin:read", managed("plugins"))
		g.Manage("GET", "/api/projects/:project_id/x", "", managed("x"))
		g.Public("POST", "/capture", web.Done)
	}))
	for request, want := range map[string][2]int{ // status on the admin and on the public address
		"GET /metrics":                {200, 404},
		"GET /debug/pprof/":           {200, 404},
		"GET /debug/pprof/goroutine":  {200, 404},
		"GET /debug/pprof/cmdline":    {200, 404},
		"GET /api/plugins/":           {200, 404},
		"GET /_liveness":              {200, 200},
		"GET /_readiness":             {200, 200},
		"GET /api/projects/1/x":       {404, 200},
		"POST /capture?token=phc_te":  {404, 200},
		"POST /api/plugins/":          {405, 404},
		"GET /debug/pprof/heap?gc=1":  {200, 404},
		"GET //metrics":               {404, 404},
		"GET /%6detrics":              {404, 404},
		"GET /x/../metrics":           {404, 404},
		"OPTIONS /metrics":            {405, 405},
		"GET /api/plugins/../plugins": {404, 404},
	} {
		method, path, _ := strings.Cut(request, " ")
		for i, base := range []string{s.AdminURL(), s.URL()} {
			if got := call(t, method, base+path, "", bearer); got.status != want[i] && (method != "OPTIONS" || got.status/100 != 4) {
				t.Errorf("%s on %s = %d %.200s, want %d", request, base, got.status, got.body, want[i])
			}
		}
	}
	if got := call(t, "GET", s.AdminURL()+"/api/plugins/", ""); got.status != 401 {
		t.Errorf("administration without a key: %d, want 401", got.status)
	}
}

// A page of another host that a browser was pointed at the loopback address with
// reads nothing.
func TestAdminAddressRefusesOtherHosts(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry(), routesFunc(func(*web.Router) {}))
	_, port, err := net.SplitHostPort(s.AdminAddress())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"evil.example": 421, "evil.example:" + port: 421, "localhost:" + port: 200, "127.0.0.1:" + port: 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.AdminURL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, answer.StatusCode, want)
		}
	}
}

func TestPprofCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.Pprof, cfg.Metrics = false, false
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry())
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/metrics"} {
		if got := call(t, "GET", s.AdminURL()+path, ""); got.status != 404 {
			t.Errorf("GET %s = %d, want 404", path, got.status)
		}
	}
}

func TestWithoutAdminAddress(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.AdminAddress = ""
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry())
	if s.AdminAddress() != "" || s.AdminURL() != "" {
		t.Errorf("admin address %q, URL %q", s.AdminAddress(), s.AdminURL())
	}
	if got := call(t, "GET", s.URL()+"/metrics", ""); got.status != 404 {
		t.Errorf("GET /metrics = %d", got.status)
	}
}

// The error of an occupied admin address names the setting, and the public address
// is free again.
func TestAdminAddressInUse(t *testing.T) {
	t.Parallel()
	first := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	cfg := webtest.Config()
	cfg.AdminAddress = first.AdminAddress()
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "http.admin_address") || !strings.Contains(err.Error(), cfg.AdminAddress) {
		t.Fatalf("start: %v", err)
	}
	ln, err := net.Listen("tcp", s.Address())
	if err != nil {
		t.Fatalf("the public address is still bound: %v", err)
	}
	_ = ln.Close()
}

// Only the owner can open the socket; one that a killed process left is replaced,
// one in use is not.
func TestAdminAddressOnUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "admin.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	cfg := webtest.Config()
	cfg.AdminAddress = "unix:" + path
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	res, err := client.Get("http://localhost/_readiness")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || s.AdminAddress() != cfg.AdminAddress {
		t.Errorf("GET over %s = %d", s.AdminAddress(), res.StatusCode)
	}
	second, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err == nil {
		t.Error("a second server took the socket")
	}
}
