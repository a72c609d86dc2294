// Package failure is the one table from kinds of faults to answers: the status,
// the type and the code that clients of this protocol know.
//
// Public paths and management paths share the table and differ in few rows. A
// fault may replace the code and the detail of its row. An error without a fault
// keeps its text to itself: it becomes one plain sentence. The package does not
// write answers; core/web does.
package failure

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
)

// Response is the answer to one kind of failure; a fault may replace its code
// and detail.
type Response struct {
	Status int
	Type   string
	Code   string
	Detail string
}

// responses is the one table from kind to answer. Management paths differ
// in managementResponses.
var responses = [...]Response{
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

var managementResponses = map[fault.Kind]Response{
	fault.Malformed:       {400, "invalid_request", "parse_error", "Malformed request."},
	fault.Unauthenticated: {401, "authentication_error", "not_authenticated", "Authentication credentials were not provided."},
}

func ofKind(kind fault.Kind, public bool) Response {
	if r, ok := managementResponses[kind]; ok && !public {
		return r
	}
	if int(kind) < len(responses) {
		return responses[kind]
	}
	return responses[fault.Internal]
}

// Answer is an error ready to be written. Attr is the field that is to blame,
// empty for none; RetryAfter is the wait of a client, 0 if unknown.
type Answer struct {
	Response
	Attr       string
	RetryAfter time.Duration
}

// AnswerOf returns the answer to any error, for a public or a management path.
// Errors of fiber have its status; the text of other errors without a fault is
// hidden.
func AnswerOf(err error, public bool) Answer {
	f := fault.From(err)
	if f == nil {
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return Answer{Response: ofStatus(e.Code, public)}
		}
		return Answer{Response: ofKind(fault.Internal, public)}
	}
	a := Answer{Response: ofKind(f.Kind, public), Attr: f.Attr, RetryAfter: f.RetryAfter}
	if f.Kind == fault.Internal {
		a.Attr = ""
		return a
	}
	if f.Code != "" {
		a.Code = f.Code
	}
	if f.Kind == fault.Conflict && a.Code != "conflict" {
		a.Type = "invalid_request" // the type server_error belongs to edits at the same time
	}
	if f.Detail != "" {
		a.Detail = f.Detail
	}
	return a.normalized()
}

// normalized applies the naming rules of the protocol.
func (a Answer) normalized() Answer {
	if a.Code == "invalid" {
		a.Code = "invalid_input"
	}
	if a.Attr == "non_field_errors" || a.Attr == "__all__" {
		a.Attr = ""
	}
	return a
}

// ofStatus returns the answer to an error of the HTTP layer.
func ofStatus(status int, public bool) Response {
	switch status {
	case fiber.StatusRequestTimeout:
		return Response{status, "timeout_error", "request_timeout", "The request took too long to arrive."}
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return Response{status, "client_error", "request_header_too_large", "The headers of the request are too large."}
	case fiber.StatusMisdirectedRequest:
		return Response{status, "invalid_request", "wrong_host", "This address answers requests for localhost or an IP address only."}
	case fiber.StatusBadRequest:
		return Response{status, "invalid_request", "parse_error", "This is not a request that can be understood."}
	}
	for kind := range responses {
		if r := ofKind(fault.Kind(kind), public); r.Status == status {
			return r
		}
	}
	return ofKind(fault.Internal, public)
}
