package web

import (
	"regexp"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sampler counts the successful public requests, to log one of so many.
type sampler struct{ n atomic.Uint64 }

// wants decides whether a request gets its line.
func (g *Router) wants(public bool, status int) bool {
	switch {
	case status >= 500:
		return true
	case g.cfg.AccessLog == LogServerErrors:
		return false
	case status >= 400:
		return true
	case g.cfg.AccessLog == LogErrors:
		return false
	case !public:
		return true
	case g.cfg.AccessLog == LogManagement:
		return false
	}
	every := uint64(g.cfg.AccessSample)
	return every < 2 || g.sampled.n.Add(1)%every == 1
}

// record writes the one line of a request. What a client put into the query
// and the keys it sent never get there.
func (r *route) record(c *fiber.Ctx, v *requestState, status int, took time.Duration) {
	if !r.gate.wants(r.public, status) {
		return
	}
	level := zapcore.InfoLevel
	if status >= 500 {
		level = zapcore.ErrorLevel
	}
	line := r.log.Check(level, "request")
	if line == nil {
		return
	}
	f := append(v.logFields[:0],
		zap.Int("status", status),
		zap.Int("bytes", len(c.Response().Body())),
		zap.Int("received", len(c.Request().Body())),
		zap.Duration("duration", took),
		zap.String("request_id", v.id))
	if v.project != 0 {
		f = append(f, zap.Int64("project_id", v.project))
	}
	if v.code != "" {
		f = append(f, zap.String("code", v.code))
	}
	if status >= 500 && v.cause != nil {
		f = append(f, zap.Error(v.cause))
	}
	if v.stack != "" {
		f = append(f, zap.String("stack", v.stack))
	}
	if r.pattern == noRoute {
		f = append(f, zap.String("path", withoutKeys(c.Path())))
	}
	line.Write(f...)
}

var keyLike = regexp.MustCompile(`ph[a-z]_[A-Za-z0-9_-]+`)

// withoutKeys is a path that may be logged.
func withoutKeys(path string) string {
	if len(path) > 200 {
		path = path[:200]
	}
	return keyLike.ReplaceAllString(path, "(key)")
}
