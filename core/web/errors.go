package web

import (
	"fmt"
	"math"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web/failure"
)

// The two formats of an error body. The public one omits attr if there is none,
// the management one has null.
type (
	publicError struct {
		Type   string `json:"type"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Attr   string `json:"attr,omitempty"`
	}
	managementError struct {
		Type   string  `json:"type"`
		Code   string  `json:"code"`
		Detail string  `json:"detail"`
		Attr   *string `json:"attr"`
	}
)

// writeAnswer replaces the response by a.
func writeAnswer(c *fiber.Ctx, a failure.Answer, public bool) {
	c.Response().ResetBody()
	h := &c.Response().Header
	if a.Status == fiber.StatusTooManyRequests || a.Status == fiber.StatusServiceUnavailable {
		seconds := max(1, int(math.Ceil(a.RetryAfter.Seconds())))
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(seconds))
		if a.Detail == "" {
			a.Detail = fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds)
		}
	}
	if a.Status == fiber.StatusMethodNotAllowed && a.Detail == "" {
		a.Detail = `Method "` + c.Method() + `" not allowed.`
	}
	if a.Status == fiber.StatusUnauthorized {
		h.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	c.Status(a.Status)
	if public {
		_ = JSON(c, publicError{a.Type, a.Code, a.Detail, a.Attr})
		return
	}
	e := managementError{Type: a.Type, Code: a.Code, Detail: a.Detail}
	if a.Attr != "" {
		e.Attr = &a.Attr
	}
	_ = JSON(c, e)
}

// writeError answers with err and keeps its cause for the log.
func (rt *route) writeError(c *fiber.Ctx, s *requestState, err error) {
	if mapError := rt.router.mapError; mapError != nil {
		err = mapError(err)
	}
	a := failure.AnswerOf(err, rt.public)
	s.cause, s.code = err, a.Code
	writeAnswer(c, a, rt.public)
}
