package web

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
)

// errorResponse is the answer to one kind of failure; a fault may replace its
// code and detail.
type errorResponse struct {
	status int
	typ    string
	code   string
	detail string
}

// errorResponses is the one table from kind to answer. Management paths differ
// in managementResponses.
var errorResponses = [...]errorResponse{
	fault.Internal:         {500, "server_error", "error", "A server error occurred."},
	fault.Invalid:          {400, "validation_error", "invalid_input", "Invalid input."},
	fault.Malformed:        {400, "validation_error", "invalid_payload", "Malformed request data."},
	fault.Unauthenticated:  {401, "authentication_error", "invalid_api_key", "Project API key invalid. You find the right one in the settings of your project."},
	fault.Forbidden:        {403, "authentication_error", "permission_denied", "You do not have permission to perform this action."},
	fault.NotFound:         {404, "invalid_request", "not_found", "Not found."},
	fault.MethodNotAllowed: {405, "invalid_request", "method_not_allowed", ""},
	fault.NotAcceptable:    {406, "invalid_request", "not_acceptable", "Could not satisfy the request Accept header."},
	fault.Conflict:         {409, "server_error", "conflict", "Somebody else changed this first."},
	fault.TooLarge:         {413, "client_error", "request_too_large", "Request too large."},
	fault.Unsupported:      {415, "invalid_request", "unsupported_media_type", "Unsupported media type in request."},
	fault.Throttled:        {429, "throttled_error", "throttled", ""},
	fault.Unavailable:      {503, "server_error", "server_error", "The server cannot do this right now. Try again later."},
	fault.PaymentRequired:  {402, "server_error", "payment_required", "This is over what your quota allows."},
}

var managementResponses = map[fault.Kind]errorResponse{
	fault.Malformed:       {400, "invalid_request", "parse_error", "Malformed request."},
	fault.Unauthenticated: {401, "authentication_error", "not_authenticated", "Authentication credentials were not provided."},
}

func responseOf(kind fault.Kind, public bool) errorResponse {
	if r, ok := managementResponses[kind]; ok && !public {
		return r
	}
	if int(kind) < len(errorResponses) {
		return errorResponses[kind]
	}
	return errorResponses[fault.Internal]
}

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

// errorAnswer is an error ready to be written.
type errorAnswer struct {
	errorResponse
	attr       string
	retryAfter time.Duration
}

// answerOf returns the answer to any error. It hides the text of errors
// without a fault.
func answerOf(err error, public bool) errorAnswer {
	f := fault.From(err)
	if f == nil {
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return errorAnswer{errorResponse: responseOfStatus(e.Code, public)}
		}
		return errorAnswer{errorResponse: responseOf(fault.Internal, public)}
	}
	a := errorAnswer{errorResponse: responseOf(f.Kind, public), attr: f.Attr, retryAfter: f.RetryAfter}
	if f.Kind == fault.Internal {
		a.attr = ""
		return a
	}
	if f.Code != "" {
		a.code = f.Code
	}
	if f.Detail != "" {
		a.detail = f.Detail
	}
	return a.normalized()
}

// normalized applies the naming rules of the protocol.
func (a errorAnswer) normalized() errorAnswer {
	if a.code == "invalid" {
		a.code = "invalid_input"
	}
	if a.attr == "non_field_errors" || a.attr == "__all__" {
		a.attr = ""
	}
	return a
}

// responseOfStatus returns the answer to an error of the HTTP layer.
func responseOfStatus(status int, public bool) errorResponse {
	switch status {
	case fiber.StatusRequestTimeout:
		return errorResponse{status, "timeout_error", "request_timeout", "The request took too long to arrive."}
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return errorResponse{status, "client_error", "request_header_too_large", "The headers of the request are too large."}
	case fiber.StatusMisdirectedRequest:
		return errorResponse{status, "invalid_request", "wrong_host", "This address answers requests for localhost or an IP address only."}
	case fiber.StatusBadRequest:
		return errorResponse{status, "invalid_request", "parse_error", "This is not a request that can be understood."}
	}
	for kind := range errorResponses {
		if r := responseOf(fault.Kind(kind), public); r.status == status {
			return r
		}
	}
	return responseOf(fault.Internal, public)
}

// write replaces the response by a.
func (a errorAnswer) write(c *fiber.Ctx, public bool) {
	c.Response().ResetBody()
	h := &c.Response().Header
	if a.status == fiber.StatusTooManyRequests || a.status == fiber.StatusServiceUnavailable {
		seconds := max(1, int(math.Ceil(a.retryAfter.Seconds())))
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(seconds))
		if a.detail == "" {
			a.detail = fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds)
		}
	}
	if a.status == fiber.StatusMethodNotAllowed && a.detail == "" {
		a.detail = `Method "` + c.Method() + `" not allowed.`
	}
	if a.status == fiber.StatusUnauthorized {
		h.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	c.Status(a.status)
	if public {
		_ = JSON(c, publicError{a.typ, a.code, a.detail, a.attr})
		return
	}
	e := managementError{Type: a.typ, Code: a.code, Detail: a.detail}
	if a.attr != "" {
		e.Attr = &a.attr
	}
	_ = JSON(c, e)
}

// writeError answers with err and keeps its cause for the log.
func (rt *route) writeError(c *fiber.Ctx, s *requestState, err error) {
	if mapError := rt.router.mapError; mapError != nil && fault.From(err) == nil {
		err = mapError(err)
	}
	a := answerOf(err, rt.public)
	s.cause, s.code = err, a.code
	a.write(c, rt.public)
}
