package ofrep

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web"
)

var (
	errNoFlag = fault.New(fault.NotFound, codeFlagNotFound, "The project has no flag with this key.")
	errQuota  = fault.New(fault.Throttled, codeGeneral, "The flag requests of the project are over quota.").After(time.Hour)
)

// statusOf returns the status of the answer for one flag.
func statusOf(c eval.Cause) int {
	switch {
	case c == eval.CauseNone:
		return fiber.StatusOK
	case failureOf(c).server:
		return fiber.StatusInternalServerError
	}
	return fiber.StatusBadRequest
}

// statuses has the status of each kind of error. Others are 500.
var statuses = map[fault.Kind]int{
	fault.Invalid:         fiber.StatusBadRequest,
	fault.Malformed:       fiber.StatusBadRequest,
	fault.Unsupported:     fiber.StatusBadRequest,
	fault.Unauthenticated: fiber.StatusUnauthorized,
	fault.Forbidden:       fiber.StatusForbidden,
	fault.NotFound:        fiber.StatusNotFound,
	fault.TooLarge:        fiber.StatusRequestEntityTooLarge,
	fault.Throttled:       fiber.StatusTooManyRequests,
	fault.Unavailable:     fiber.StatusServiceUnavailable,
}

// fail answers with an error in the form of the protocol. key is that of the
// requested flag, empty for all flags.
func (h *HTTP) fail(c *fiber.Ctx, key string, err error) error {
	f := fault.From(err)
	status, details := fiber.StatusInternalServerError, "The server failed."
	if e, ok := errors.AsType[*fiber.Error](err); ok && f == nil {
		status, details = e.Code, "The request could not be received."
	}
	if f != nil {
		if s, ok := statuses[f.Kind]; ok {
			status, details = s, f.Detail
		}
		if f.RetryAfter > 0 {
			c.Set(fiber.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(f.RetryAfter.Seconds())))))
		}
	}
	switch {
	case status == fiber.StatusUnauthorized || status == fiber.StatusForbidden:
		c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="invalid_token", error_description="`+quotable(details)+`"`)
		return web.Empty(c, status)
	case status == fiber.StatusInternalServerError:
		h.log.Error("evaluation request failed", zap.String("request_id", web.RequestID(c)), zap.Error(err))
	case c.Response().Header.Peek(fiber.HeaderRetryAfter) == nil && (status == fiber.StatusTooManyRequests || status == fiber.StatusServiceUnavailable):
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	c.Status(status)
	return send(c, appendError(nil, key, codeOf(f), details))
}

// codeOf returns the code of the protocol for an error.
func codeOf(f *fault.Error) string {
	switch {
	case f == nil:
		return codeGeneral
	case f.Code == codeParse, f.Code == codeNoTarget, f.Code == codeContext, f.Code == codeFlagNotFound:
		return f.Code
	case f.Kind == fault.Malformed, f.Kind == fault.Unsupported, f.Code == "no_data":
		return codeParse
	}
	return codeGeneral
}

func appendError(dst []byte, key, code, details string) []byte {
	if details == "" {
		details = "The request failed."
	}
	dst = append(dst, '{')
	if key != "" {
		dst = append(appendText(append(dst, `"key":`...), key), ',')
	}
	dst = append(dst, `"errorCode":"`...)
	return appendFailure(dst, code, details)
}

// quotable returns a text that can stand in quotes in a header.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}
