package web

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/receive"
)

// receiveBody receives the body of the request within the limit and the budget.
// It runs once; further calls return the same error.
func (r *Router) receiveBody(c *fiber.Ctx, s *requestState) (err error) {
	if s.received {
		return s.bodyErr
	}
	s.received = true
	limit := r.cfg.BodyBytes
	if s.route.body > 0 {
		limit = min(limit, s.route.body)
	}
	s.wire, err = receive.Body(c.Context(), &s.memory, limit)
	if s.bodyErr = err; err != nil && fault.From(err) == nil {
		s.bodyErr = fiber.NewError(receive.StatusOf(err))
	}
	return s.bodyErr
}

// receivedBytes returns the size of the body as received, 0 for one that was
// rejected on its way.
func receivedBytes(c *fiber.Ctx) int {
	if c.Request().IsBodyStream() {
		return 0
	}
	return len(c.Request().Body())
}
