package web

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/guidonhq/guidon/core/web/accesslog"
)

// logRequest writes the log line of a request. The query and keys are never
// logged.
func (rt *route) logRequest(c *fiber.Ctx, s *requestState, status int, took time.Duration) {
	if !rt.router.access.Selects(rt.public, status) {
		return
	}
	level := zapcore.InfoLevel
	switch {
	case strings.HasSuffix(s.code, "_saturated"):
		level = zapcore.WarnLevel
	case status >= 500:
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
	if rt.router.cfg.LogClient {
		f = append(f, zap.String("client", rt.router.IP(c).String()))
	}
	if s.project != 0 {
		f = append(f, zap.Int64("project_id", s.project))
	}
	if s.code != "" {
		f = append(f, zap.String("code", s.code))
	}
	if status >= 500 && s.cause != nil {
		f = append(f, zap.Error(s.cause))
	}
	if n := rt.router.access.Skipped(); n > 0 {
		f = append(f, zap.Int64("skipped_lines", n))
	}
	if s.stack != "" {
		f = append(f, zap.String("stack", s.stack))
	}
	if rt.pattern == noRoute {
		f = append(f, zap.String("path", accesslog.Redact(c.Path())))
	}
	line.Write(f...)
}
