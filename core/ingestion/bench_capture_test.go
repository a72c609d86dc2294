package ingestion_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// nowhere is a journal that drops records.
type nowhere struct{}

func (nowhere) Append(context.Context, []byte) (uint64, error) { return 1, nil }

// BenchmarkCapture is the handler without the network: 64 at a time, with the
// CPU time of the process beside the time it took. The floor is Fiber answering
// a fixed body.
func BenchmarkCapture(b *testing.B) {
	floor := fiber.New()
	floor.Post("/capture/", func(c *fiber.Ctx) error {
		c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
		return c.SendString(`{"status":1}`)
	})
	single := append([]byte(`{"api_key":"phc_benchmark_key_0123456789",`), ingestiontest.EventBody(1)[1:]...)
	b.Run("floor", func(b *testing.B) { benchHandler(b, floor.Handler(), "/capture/", single, 1) })
	b.Run("single/no-journal", func(b *testing.B) { benchHandler(b, captureHandler(b, nowhere{}), "/capture/", single, 1) })
	b.Run("single/fsync", func(b *testing.B) {
		benchHandler(b, captureHandler(b, openJournal(b, b.TempDir())), "/capture/", single, 1)
	})
	b.Run("single/no-journal/traced=1%", func(b *testing.B) {
		s := captureServer(b, nowhere{})
		s.Trace(tracing.New(tracing.Config{Sample: 0.01}, "test", &spanKeeper{}, nil))
		h, err := s.Handler()
		if err != nil {
			b.Fatal(err)
		}
		benchHandler(b, h, "/capture/", single, 1)
	})
	b.Run("batch100/no-journal", func(b *testing.B) {
		benchHandler(b, captureHandler(b, nowhere{}), "/batch/", ingestiontest.BatchBody(100), 100)
	})
	b.Run("batch100/fsync", func(b *testing.B) {
		benchHandler(b, captureHandler(b, openJournal(b, b.TempDir())), "/batch/", ingestiontest.BatchBody(100), 100)
	})
}

func captureHandler(b *testing.B, j capture.Appender) fasthttp.RequestHandler {
	b.Helper()
	h, err := captureServer(b, j).Handler()
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func captureServer(b *testing.B, j capture.Appender) *web.Server {
	b.Helper()
	k := webtest.Keys{Projects: map[string]auth.Project{"phc_benchmark_key_0123456789": {ID: 7}}}
	cfg := webtest.Config()
	cfg.AccessLog = web.LogServerErrors
	s, err := web.New(cfg, k, zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	s.Mount(capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithVisitors(guests{}))
	return s
}

func benchHandler(b *testing.B, h fasthttp.RequestHandler, path string, body []byte, events int) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(32)
	before := cpuTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx := new(fasthttp.RequestCtx)
		for pb.Next() {
			ctx.Request.Reset()
			ctx.Request.Header.SetMethod(fiber.MethodPost)
			ctx.Request.SetRequestURI(path)
			ctx.Request.Header.SetContentType("application/json")
			ctx.Request.SetBodyRaw(body)
			ctx.Response.Reset()
			h(ctx)
			if ctx.Response.StatusCode() != fiber.StatusOK {
				b.Errorf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
				return
			}
			ctx.ResetUserValues()
		}
	})
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*events), "cpu-ns/event")
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
