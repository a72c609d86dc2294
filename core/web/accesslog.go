package web

import (
	"regexp"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// accessLog selects the requests that are logged.
type accessLog struct {
	which string // one of the Log constants
	every uint64 // of the successful public requests; 0 and 1 log all
	count atomic.Uint64
}

func newAccessLog(cfg Config) *accessLog {
	return &accessLog{which: cfg.AccessLog, every: uint64(cfg.AccessSample)}
}

// selects reports whether a request is logged.
func (l *accessLog) selects(public bool, status int) bool {
	switch {
	case status >= 500:
		return true
	case l.which == LogServerErrors:
		return false
	case status >= 400:
		return true
	case l.which == LogErrors:
		return false
	case !public:
		return true
	case l.which == LogManagement:
		return false
	}
	return l.every < 2 || l.count.Add(1)%l.every == 1
}

// logRequest writes the log line of a request. The query and keys are never
// logged.
func (rt *route) logRequest(c *fiber.Ctx, s *requestState, status int, took time.Duration) {
	if !rt.router.access.selects(rt.public, status) {
		return
	}
	level := zapcore.InfoLevel
	if status >= 500 {
		level = zapcore.ErrorLevel
	}
	line := rt.log.Check(level, "request")
	if line == nil {
		return
	}
	f := append(s.logFields[:0],
		zap.Int("status", status),
		zap.Int("bytes", len(c.Response().Body())),
		zap.Int("received", receivedBytes(c)),
		zap.Duration("duration", took),
		zap.String("request_id", s.id))
	if s.project != 0 {
		f = append(f, zap.Int64("project_id", s.project))
	}
	if s.code != "" {
		f = append(f, zap.String("code", s.code))
	}
	if status >= 500 && s.cause != nil {
		f = append(f, zap.Error(s.cause))
	}
	if s.stack != "" {
		f = append(f, zap.String("stack", s.stack))
	}
	if rt.pattern == noRoute {
		f = append(f, zap.String("path", redactedPath(c.Path())))
	}
	line.Write(f...)
}

var keyPattern = regexp.MustCompile(`ph[a-z]_[A-Za-z0-9_-]+`)

// redactedPath returns a path without keys, at most 200 bytes of it.
func redactedPath(path string) string {
	if len(path) > 200 {
		path = path[:200]
	}
	return keyPattern.ReplaceAllString(path, "(key)")
}
