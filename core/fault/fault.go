// Package fault defines the kinds of failures of all packages.
//
// A package gives a failure a Kind where its meaning is known: the store knows
// that a row is missing, the service knows that a key is taken. Package core/web
// owns the one table from Kind to HTTP status and body; other packages do not
// depend on HTTP. An error without a Kind is Internal: it is logged with its cause
// and shown to the caller as one plain sentence, so a stack trace or a SQL text
// never leaves the process.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the closed list of failures. The zero value is Internal, so that a
// forgotten Kind is never shown to a caller as their mistake.
type Kind uint8

// The kinds.
const (
	Internal         Kind = iota // an error of the server; retrying may help
	Invalid                      // the input breaks a rule; Attr says which field
	Malformed                    // the input cannot be read at all
	Unauthenticated              // no credential, or not a valid one
	Forbidden                    // a valid credential without the right
	NotFound                     // no such thing, or not visible to the caller
	MethodNotAllowed             // the thing exists, this verb on it does not
	NotAcceptable                // the asked-for format is not offered
	Conflict                     // the state changed in the meantime
	TooLarge                     // over a size limit
	Unsupported                  // a content type or encoding that is not known
	Throttled                    // over a rate; RetryAfter is the wait
	Unavailable                  // a dependency is down; RetryAfter is the wait
	PaymentRequired              // over a quota
)

// Error is a failure with a kind. Code is stable snake_case for programs,
// Detail one sentence for people, Attr the offending field (nested names are
// joined with two underscores) or empty. An Error is immutable once returned.
type Error struct {
	Kind       Kind
	Code       string
	Detail     string
	Attr       string
	RetryAfter time.Duration
	cause      error
}

// New returns a failure of the given kind.
func New(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// Newf is New with a formatted detail.
func Newf(kind Kind, code, format string, args ...any) *Error {
	return New(kind, code, fmt.Sprintf(format, args...))
}

// Field returns an Invalid failure about one field of the input.
func Field(attr, code, detail string) *Error {
	return &Error{Kind: Invalid, Code: code, Detail: detail, Attr: attr}
}

// Fieldf is Field with a formatted detail.
func Fieldf(attr, code, format string, args ...any) *Error {
	return Field(attr, code, fmt.Sprintf(format, args...))
}

// At returns a copy of e that names the field attr.
func (e *Error) At(attr string) *Error {
	c := *e
	c.Attr = attr
	return &c
}

// After returns a copy of e that asks the caller to retry after d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns a copy of e that carries cause for the log. The cause is
// never part of what a caller of the API sees.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Error is the text for the log and the command line: code, field, detail and
// cause, as far as there are any.
func (e *Error) Error() string {
	text := e.Code
	if e.Attr != "" {
		text += " (" + e.Attr + ")"
	}
	text += ": " + e.Detail
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// From returns the first Error in err's chain, or nil when there is none.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}

// KindOf returns the kind of err: Internal for an error that has none.
func KindOf(err error) Kind {
	if e := From(err); e != nil {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the code of err for metrics and dead letters: "error" without one.
func CodeOf(err error) string {
	if e := From(err); e != nil && e.Code != "" {
		return e.Code
	}
	return "error"
}

// Is reports whether err has the given kind. A nil err has no kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
