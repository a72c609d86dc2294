package web

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/budget"
)

// Payload is the decoded body of a client library's request.
type Payload = body.Payload

// Limits bound the decoding of a body.
type Limits = body.Limits

// Limits returns the configured limits.
func (r *Router) Limits() Limits {
	return Limits{InflatedBytes: r.cfg.InflatedBytes, Depth: r.cfg.JSONDepth}
}

// maxValues is the maximum number of JSON values in a management request.
const maxValues = 500_000

// Body decodes the request of a client library; see body.Decoder. The budget of
// the server pays for it, also if limits.Memory is nil. The payload is valid
// until the handler returns. A request that could not be received fails here.
func Body(c *fiber.Ctx, limits Limits) (*Payload, error) {
	s := stateOf(c)
	if s.bodyErr != nil {
		return nil, s.bodyErr
	}
	limits.Memory = &s.memory
	if err := s.memory.StartProcessing(); err != nil {
		return nil, err
	}
	defer s.memory.EndProcessing()
	return s.body.Decode(c.Request(), limits)
}

// Plain returns the body of a request without its content encoding, which is also
// recognized by the first bytes of gzip. The budget of the server pays for it. It
// is valid until the handler returns.
func Plain(c *fiber.Ctx, limits Limits) ([]byte, error) {
	s := stateOf(c)
	if s.bodyErr != nil {
		return nil, s.bodyErr
	}
	limits.Memory = &s.memory
	if err := s.memory.StartProcessing(); err != nil {
		return nil, err
	}
	defer s.memory.EndProcessing()
	raw, err := plainBody(c, limits)
	if err == nil && len(raw) > 2 && raw[0] == 0x1f && raw[1] == 0x8b {
		return s.body.Inflate(raw, "gzip", limits)
	}
	return raw, err
}

// Sanitize checks and repairs the JSON of the Payload that Body has returned for
// limits.Unchecked.
func Sanitize(c *fiber.Ctx, limits Limits) error {
	s := stateOf(c)
	limits.Memory = &s.memory
	return s.body.Sanitize(limits)
}

// Memory returns the account that pays for the memory of the request. What it
// holds is released after the answer.
func Memory(c *fiber.Ctx) *budget.Account { return &stateOf(c).memory }
