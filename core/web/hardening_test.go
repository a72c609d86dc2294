package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// A request whose end is ambiguous is answered with 400, once, and the connection
// closes: what follows on it is never read as a request.
func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"a length":                    {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 200},
		"chunks":                      {"POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		"a length and chunks":         {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 400},
		"a length without its body":   {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		"two codings":                 {"POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, 400},
		"two lengths":                 {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + smuggled, 400},
		"a list of lengths":           {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\n{}" + smuggled, 400},
		"a signed length":             {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}" + smuggled, 400},
		"a continued line":            {"POST /e HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 2\r\n\r\n" + smuggled, 400},
		"a space before the colon":    {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}" + smuggled, 400},
		"a bare line feed":            {"POST /e HTTP/1.1\r\nHost: a\nContent-Length: 2\r\n\r\n{}" + smuggled, 400},
		"chunks in HTTP/1.0":          {"POST /e HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 400},
		"a chunk size with line feed": {"POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + smuggled, 400},
		"expecting a continue":        {"POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", s.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := c.Write([]byte(tc.request)); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != tc.status {
				t.Errorf("status %d %s, want %d", res.StatusCode, body, tc.status)
			}
			if tc.status == http.StatusOK {
				return
			}
			if rest, err := io.ReadAll(in); len(rest) > 0 || (err != nil && !strings.Contains(err.Error(), "reset")) {
				t.Errorf("the connection went on: %q %v", rest, err)
			}
		})
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry(), routesFunc(func(g *web.Router) {
		g.Public("POST", "/e", web.Done)
		g.Manage("GET", "/api/x", "", managed("x"))
		g.Admin("GET", "/api/y", "", managed("y"))
	}))
	for request, stored := range map[string]string{
		"POST " + s.URL() + "/e":            "",
		"GET " + s.URL() + "/nowhere":       "",
		"PROPFIND " + s.URL() + "/e":        "",
		"GET " + s.URL() + "/api/x":         "no-store",
		"GET " + s.URL() + "/api/nowhere":   "no-store",
		"GET " + s.AdminURL() + "/api/y":    "no-store",
		"GET " + s.AdminURL() + "/metrics":  "no-store",
		"GET " + s.AdminURL() + "/api/none": "no-store",
	} {
		method, url, _ := strings.Cut(request, " ")
		got := call(t, method, url, "", bearer)
		if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != stored || got.header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %d %v", request, got.status, got.header)
		}
	}
}

// Unknown keys are refused past a number for each client address, also for management;
// the refusals are counted.
func TestFailedKeysAreLimited(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.FailedKeyRate = web.Rate{PerSecond: 0.001, Burst: 3}
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), prometheus.NewRegistry(), routesFunc(registerLogRoutes))
	attacker, other := "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"
	for n := range 3 {
		if got := call(t, "POST", s.URL()+"/e?token=phc_none", "", attacker); got.status != 401 {
			t.Errorf("failure %d: %d", n, got.status)
		}
	}
	for _, url := range []string{"/e?token=phc_none", "/e?token=phc_none2"} {
		if got := call(t, "POST", s.URL()+url, "", attacker); got.status != 429 || got.header.Get("Retry-After") == "" {
			t.Errorf("%s past the limit: %d %v", url, got.status, got.header)
		}
	}
	for n, want := range []int{401, 401, 401, 429} { // project keys do not count
		if got := call(t, "GET", s.URL()+"/api/projects/1/x", "", attacker, "Authorization: Bearer phx_none"); got.status != want {
			t.Errorf("personal key %d: %d, want %d", n, got.status, want)
		}
	}
	for _, headers := range [][]string{{other}, {}} {
		if got := call(t, "POST", s.URL()+"/e?token=phc_test", "", headers...); got.status != 200 {
			t.Errorf("another client: %d", got.status)
		}
	}
	if got := call(t, "GET", s.AdminURL()+"/metrics", "").body; !strings.Contains(got, `guidon_http_refused_total{reason="failed_keys"} 3`) {
		t.Error("the refusals are not counted")
	}
}

func TestAccessLogHasClient(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		cfg := webtest.Config()
		cfg.LogClient = logged
		path := filepath.Join(t.TempDir(), "log")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(out), zap.InfoLevel))
		s := webtest.Start(t, cfg, webtest.DefaultKeys(), log, nil, routesFunc(registerLogRoutes))
		for _, client := range []string{"192.0.2.1", "2001:db8::7"} {
			call(t, "POST", s.URL()+"/e?token=phc_test", "", "X-Forwarded-For: "+client)
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), `"request"`) {
				t.Fatalf("log %q: %v", text, err)
			}
			if strings.Contains(string(text), `"client":"`+client+`"`) != logged {
				t.Errorf("logged %v: %s", logged, text)
			}
		}
	}
}
