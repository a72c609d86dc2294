package web_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/envelope"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// oneEvent is a capture request of usual size.
var oneEvent = []byte(`{"api_key":"phc_test","event":"order paid","distinct_id":"018b0c1e-1111-7aaa-8bbb-0123456789ab","timestamp":"2026-11-21T02:46:01.593Z","properties":{"$lib":"posthog-node","$lib_version":"4.10.2","amount":129.9,"currency":"EUR","items":3,"coupon":null,"first_order":false,"$groups":{"organization":"acme"},"$set":{"email":"ada@corp.test","plan":"pro"},"url":"https://shop.example/checkout?step=3","title":"Checkout · Shop"}}`)

func batchOf(n int) []byte {
	return []byte(`{"api_key":"phc_test","batch":[` + strings.TrimSuffix(strings.Repeat(string(oneEvent)+",", n), ",") + `]}`)
}

// BenchmarkRouter measures the router around a handler that does nothing; the
// floor is Fiber answering the same fixed body.
func BenchmarkRouter(b *testing.B) {
	floor := fiber.New(fiber.Config{DisableStartupMessage: true})
	floor.Post("/capture", web.Done)
	run(b, "floor", floor.Handler(), "")
	for _, bc := range []struct {
		name string
		log  *zap.Logger
	}{
		{"public/no-log", zap.NewNop()},
		{"public/json-log", jsonLog()},
	} {
		run(b, bc.name, handler(b, bc.log, func(g *web.Router) { g.Public("POST", "/capture", web.Done) }), "")
	}
	run(b, "public/body-and-key", handler(b, zap.NewNop(), func(g *web.Router) {
		g.Public("POST", "/capture", func(c *fiber.Ctx) error {
			if _, err := web.Body(c, g.Limits()); err != nil {
				return err
			}
			if _, err := g.ProjectOf(c, "phc_test", ""); err != nil {
				return err
			}
			return web.Done(c)
		})
	}), "")
	run(b, "manage/json-log", handler(b, jsonLog(), func(g *web.Router) {
		g.Manage("POST", "/capture", "feature_flag:read", func(c *web.Call) error { return web.Done(c.Ctx) })
	}), "Bearer phx_test")
}

func jsonLog() *zap.Logger {
	enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(enc, &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(nowhere{})}, zap.InfoLevel))
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func handler(b *testing.B, log *zap.Logger, r routesFunc) fasthttp.RequestHandler {
	b.Helper()
	cfg := webtest.Config()
	cfg.ManageRate = web.Rate{}
	s, err := web.New(cfg, webtest.DefaultKeys(), log, prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	s.Mount(r)
	h, err := s.Handler()
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func run(b *testing.B, name string, h fasthttp.RequestHandler, authorization string) {
	b.Run(name, func(b *testing.B) {
		ctx := new(fasthttp.RequestCtx)
		b.ReportAllocs()
		for b.Loop() {
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.SetRequestURI("/capture/")
			if authorization != "" {
				ctx.Request.Header.Set("Authorization", authorization)
			}
			ctx.Request.SetBodyRaw(oneEvent)
			h(ctx)
			if ctx.Response.StatusCode() != fiber.StatusOK {
				b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
			ctx.Request.Reset()
			ctx.Response.Reset()
		}
	})
}

func BenchmarkToken(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			body := batchOf(n)
			c := request(sent{body: body})
			defer release(c)
			p, err := web.Body(c, limits)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				env, err := envelope.Read(p.JSON)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := web.Token(c, p, &env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkServer is BenchmarkRouter over the loopback, with 64 connections.
// cpu-µs/op is the CPU time of server and clients together.
func BenchmarkServer(b *testing.B) {
	floor := fiber.New(fiber.Config{DisableStartupMessage: true})
	floor.Post("/capture", web.Done)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = floor.Listener(ln) }()
	defer func() { _ = floor.Shutdown() }()
	b.Run("floor", func(b *testing.B) { load(b, ln.Addr().String()) })
	server := webtest.Start(b, webtest.Config(), webtest.DefaultKeys(), jsonLog(), prometheus.NewRegistry(), routesFunc(func(g *web.Router) {
		g.Public("POST", "/capture", web.Done)
	}))
	b.Run("router", func(b *testing.B) { load(b, server.Address()) })
}

func load(b *testing.B, address string) {
	client := &fasthttp.HostClient{Addr: address, MaxConns: 64}
	b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
	before := cpu()
	b.RunParallel(func(pb *testing.PB) {
		req, resp := new(fasthttp.Request), new(fasthttp.Response)
		req.Header.SetMethod("POST")
		req.SetRequestURI("http://" + address + "/capture/")
		req.SetBodyRaw(oneEvent)
		for pb.Next() {
			if err := client.Do(req, resp); err != nil || resp.StatusCode() != fiber.StatusOK {
				b.Errorf("%d %v", resp.StatusCode(), err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// cpu is the CPU time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
