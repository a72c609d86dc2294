package web

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web/body"
)

// Payload is the decoded body of a client library's request.
type Payload = body.Payload

// Limits bound the decoding of a body.
type Limits = body.Limits

// Limits returns the configured limits.
func (r *Router) Limits() Limits {
	return Limits{InflatedBytes: r.cfg.InflatedBytes, Depth: r.cfg.JSONDepth}
}

// Body decodes the request of a client library; see body.Decoder. The payload
// is valid until the handler returns.
func Body(c *fiber.Ctx, limits Limits) (*Payload, error) {
	return stateOf(c).body.Decode(c.Request(), limits)
}
