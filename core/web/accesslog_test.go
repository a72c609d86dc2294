package web_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func watched() (*zap.Logger, *observer.ObservedLogs) {
	core, lines := observer.New(zapcore.InfoLevel)
	return zap.New(core), lines
}

func registerLogRoutes(g *web.Router) {
	g.Public("POST", "/e", func(c *fiber.Ctx) error {
		if _, err := g.ProjectOf(c, c.Query("token"), ""); err != nil {
			return err
		}
		return web.Done(c)
	})
	g.Public("POST", "/down", func(*fiber.Ctx) error {
		return fault.New(fault.Unavailable, "disk_full", "No room.").Because(errors.New("disk full"))
	})
	g.Manage("GET", "/api/projects/:project_id/x", "", managed("x"))
}

func TestAccessLogLine(t *testing.T) {
	t.Parallel()
	log, lines := watched()
	base := "http://" + webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), log, nil, routesFunc(registerLogRoutes)).Address()
	call(t, "POST", base+"/e?token=phc_test", `{"a":1}`, "X-Request-Id: one")
	call(t, "POST", base+"/e?token=phc_none", `{}`, "X-Request-Id: two")
	call(t, "GET", base+"/api/projects/1/x?personal_api_key=phx_test", "", "X-Request-Id: three")
	call(t, "POST", base+"/down", "", "X-Request-Id: four")
	call(t, "GET", base+"/array/phc_test/nothing?token=phc_test", "", "X-Request-Id: five", bearer)
	for id, want := range map[string]string{
		"one":   "info POST /e 200 bytes=12 received=7 project=1 code=<nil> error=<nil> path=<nil>",
		"two":   "info POST /e 401 bytes=92 received=2 project=<nil> code=invalid_api_key error=<nil> path=<nil>",
		"three": "info GET /api/projects/:project_id/x 200 bytes=1 received=0 project=1 code=<nil> error=<nil> path=/api/projects/1/x",
		"four":  "error POST /down 503 bytes=62 received=0 project=<nil> code=disk_full error=disk_full: No room.: disk full path=<nil>",
		"five":  "info GET (none) 404 bytes=67 received=0 project=<nil> code=not_found error=<nil> path=/array/(key)/nothing",
	} {
		found := lines.FilterField(zap.String("request_id", id)).All()
		if len(found) != 1 {
			t.Errorf("%s has %d lines", id, len(found))
			continue
		}
		f := found[0].ContextMap()
		got := fmt.Sprintf("%s %s %s %d bytes=%d received=%d project=%v code=%v error=%v path=%v", found[0].Level, f["method"], f["route"], f["status"], f["bytes"], f["received"], f["project_id"], f["code"], f["error"], f["path"])
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", id, got, want)
		}
		if took, ok := f["duration_ms"].(float64); !ok || took < 0 {
			t.Errorf("%s has the duration %v", id, f["duration_ms"])
		}
	}
	for _, l := range lines.All() {
		if s := fmt.Sprint(l.ContextMap()); strings.Contains(s, "phc_") || strings.Contains(s, "phx_") {
			t.Errorf("a key is in the log: %s", s)
		}
	}
}

func TestAccessLogLevels(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		level  string
		sample int
		want   int // lines of 4 good public, 1 refused public, 1 broken public, 1 management
	}{
		"everything":              {web.LogAll, 1, 7},
		"one of two good ones":    {web.LogAll, 2, 5},
		"management and failures": {web.LogManagement, 0, 3},
		"what was refused":        {web.LogErrors, 0, 2},
		"what is broken":          {web.LogServerErrors, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, lines := watched()
			cfg := webtest.Config()
			cfg.AccessLog, cfg.AccessSample = tc.level, tc.sample
			base := "http://" + webtest.Start(t, cfg, webtest.DefaultKeys(), log, nil, routesFunc(registerLogRoutes)).Address()
			for range 4 {
				call(t, "POST", base+"/e?token=phc_test", "")
			}
			call(t, "POST", base+"/e", "")
			call(t, "POST", base+"/down", "")
			call(t, "GET", base+"/api/projects/1/x", "", bearer)
			if n := lines.FilterMessage("request").Len(); n != tc.want {
				t.Errorf("%d lines, want %d", n, tc.want)
			}
		})
	}
}

func TestMetricsAreByRoute(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), reg, routesFunc(registerLogRoutes))
	base := s.URL()
	call(t, "POST", base+"/e?token=phc_test", "")
	call(t, "POST", base+"/e/?token=phc_test", "")
	call(t, "POST", base+"/e?token=x", "")
	call(t, "GET", base+"/api/projects/1/x", "", bearer)
	call(t, "GET", base+"/nowhere/1", "")
	got := call(t, "GET", s.AdminURL()+"/metrics", "").body
	for _, want := range []string{
		`guidon_http_requests_total{method="POST",route="/e",status="2xx"} 2`,
		`guidon_http_requests_total{method="POST",route="/e",status="4xx"} 1`,
		`guidon_http_requests_total{method="GET",route="/api/projects/:project_id/x",status="2xx"} 1`,
		`guidon_http_requests_total{method="(any)",route="(none)",status="4xx"} 1`,
		`guidon_http_request_duration_seconds_count{method="POST",route="/e"} 3`,
		`guidon_http_requests_in_flight 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("/metrics has no %s", want)
		}
	}
}
