package web

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/fault"
)

// look is how one kind of failure is answered when the room has said nothing
// more about it.
type look struct {
	status int
	typ    string
	code   string
	detail string
}

// looks is the one table from kind to answer; others is what the management
// face does differently.
var looks = [...]look{
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

var others = map[fault.Kind]look{
	fault.Malformed:       {400, "invalid_request", "parse_error", "Malformed request."},
	fault.Unauthenticated: {401, "authentication_error", "not_authenticated", "Authentication credentials were not provided."},
}

func lookOf(kind fault.Kind, public bool) look {
	if l, ok := others[kind]; ok && !public {
		return l
	}
	if int(kind) < len(looks) {
		return looks[kind]
	}
	return looks[fault.Internal]
}

// The two faces of an error. The public one leaves attr out when there is
// none, the management one says null.
type (
	publicFace struct {
		Type   string `json:"type"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Attr   string `json:"attr,omitempty"`
	}
	manageFace struct {
		Type   string  `json:"type"`
		Code   string  `json:"code"`
		Detail string  `json:"detail"`
		Attr   *string `json:"attr"`
	}
)

// answer is an error ready to be written.
type answer struct {
	look
	attr  string
	retry time.Duration
}

// answerTo turns any error into what the caller may know of it.
func answerTo(err error, public bool) answer {
	f := fault.From(err)
	if f == nil {
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return answer{look: lookOfStatus(e.Code, public)}
		}
		return answer{look: lookOf(fault.Internal, public)}
	}
	a := answer{look: lookOf(f.Kind, public), attr: f.Attr, retry: f.RetryAfter}
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
	return a.tidy()
}

// tidy applies the naming rules that clients of this protocol know.
func (a answer) tidy() answer {
	if a.code == "invalid" {
		a.code = "invalid_input"
	}
	if a.attr == "non_field_errors" || a.attr == "__all__" {
		a.attr = ""
	}
	return a
}

// lookOfStatus is the answer to what the HTTP layer itself refuses.
func lookOfStatus(status int, public bool) look {
	switch status {
	case fiber.StatusRequestTimeout:
		return look{status, "timeout_error", "request_timeout", "The request took too long to arrive."}
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return look{status, "client_error", "request_header_too_large", "The headers of the request are too large."}
	case fiber.StatusBadRequest:
		return look{status, "invalid_request", "parse_error", "This is not a request that can be understood."}
	}
	for kind := range looks {
		if l := lookOf(fault.Kind(kind), public); l.status == status {
			return l
		}
	}
	return lookOf(fault.Internal, public)
}

// write replaces whatever answer there was by a.
func (a answer) write(c *fiber.Ctx, public bool) {
	c.Response().ResetBody()
	h := &c.Response().Header
	if a.status == fiber.StatusTooManyRequests || a.status == fiber.StatusServiceUnavailable {
		seconds := max(1, int(math.Ceil(a.retry.Seconds())))
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
		_ = JSON(c, publicFace{a.typ, a.code, a.detail, a.attr})
		return
	}
	face := manageFace{Type: a.typ, Code: a.code, Detail: a.detail}
	if a.attr != "" {
		face.Attr = &a.attr
	}
	_ = JSON(c, face)
}

// fail answers with err and remembers why for the log.
func (r *route) fail(c *fiber.Ctx, v *requestState, err error) {
	if mend := r.gate.mend; mend != nil && fault.From(err) == nil {
		err = mend(err)
	}
	a := answerTo(err, r.public)
	v.cause, v.code = err, a.code
	a.write(c, r.public)
}

// guarded runs the handler; a panic in it comes back as an error.
func (r *route) guarded(c *fiber.Ctx, v *requestState) (err error) {
	defer func() {
		if p := recover(); p != nil {
			v.stack = string(debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.run(c)
}
