package web

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web/accesslog"
)

// logRequest writes the log line of a request. The query and keys are never
// logged.
func (rt *route) logRequest(c *fiber.Ctx, s *requestState, status int, took time.Duration) {
	now := rt.router.live.Load()
	if !now.access.Selects(accesslog.KindOf(c.Method(), s.code, rt.public), status) {
		return
	}
	line := rt.log.Check(accesslog.Level(status, s.code), "request")
	if line == nil {
		return
	}
	f := append(s.logFields[:0],
		zap.Int("status", status),
		zap.Int("bytes", len(c.Response().Body())),
		zap.Int("received", receivedBytes(c)),
		accesslog.Duration(took),
		zap.String("request_id", s.id))
	if now.logClient {
		f = append(f, zap.String("client", rt.router.IP(c).String()))
	}
	if s.project != 0 {
		f = append(f, zap.Int64("project_id", s.project))
	}
	f = s.principal.append(f)
	if s.code != "" {
		f = append(f, zap.String("code", s.code))
	}
	if status >= 500 && s.cause != nil {
		f = append(f, zap.Error(s.cause))
	}
	if s.span != nil {
		f = append(f, zap.String("trace_id", s.span.TraceID()))
	}
	if n := now.access.Skipped(); n > 0 {
		f = append(f, zap.Int64("skipped_lines", n))
	}
	if s.stack != "" {
		f = append(f, zap.String("stack", s.stack))
	}
	if rt.pattern == noRoute {
		f = append(f, accesslog.Method(c.Method()))
	}
	if rt.pattern == noRoute || !rt.public && strings.Contains(rt.pattern, ":") {
		f = append(f, zap.String("path", accesslog.Redact(c.Path())))
	}
	line.Write(f...)
}

// caller is the key of a request in the log.
type caller struct {
	key, user int64
	secretKey bool
}

// append adds the ids of the key and of its user to the fields of a line.
func (k caller) append(f []zap.Field) []zap.Field {
	switch {
	case k.key == 0 && k.user == 0:
		return f
	case k.key == 0: // a session
		return append(f, zap.Int64("user_id", k.user))
	case k.secretKey:
		return append(f, zap.Int64("secret_key_id", k.key))
	}
	return append(f, zap.Int64("key_id", k.key), zap.Int64("user_id", k.user))
}

// noteCaller keeps the key of the request for the log.
func noteCaller(c *fiber.Ctx, p *auth.Principal) {
	if p != nil {
		stateOf(c).principal = caller{p.KeyID, p.User.ID, p.SecretKey}
	}
}
