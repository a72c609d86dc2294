package sdk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Class decides how the host handles an error. The zero value is handled as Transient
// and counted as a contract violation.
type Class uint8

// The classes, with the reaction of the host.
const (
	ClassUnspecified  Class = iota
	ClassTransient          // retries with growing delays
	ClassThrottled          // pauses for RetryAfter and sends less at a time
	ClassPermanent          // never tries again: the record becomes a dead letter
	ClassNotConnected       // calls Open again, then tries again
	ClassConfig             // stops sending until the operator changes the config
	ClassUnsupported        // uses something else, never tries again
	ClassInternal           // a bug in the plugin: as Transient, a few times only
)

var classNames = [...]string{
	"unspecified", "transient", "throttled", "permanent",
	"not_connected", "config", "unsupported", "internal",
}

// String returns the class in snake_case.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// Source is the side that caused an error, for alerts to the right team.
type Source uint8

// The sources.
const (
	SourceUnknown    Source = iota
	SourcePlugin            // the plugin itself
	SourceDownstream        // what the plugin talks to
)

// String returns the source in lower case.
func (s Source) String() string {
	switch s {
	case SourcePlugin:
		return "plugin"
	case SourceDownstream:
		return "downstream"
	default:
		return "unknown"
	}
}

// Error is a failure as the host and the operator see it.
type Error struct {
	// Class decides what happens next.
	Class Class
	// Code is stable, snake_case, and documented by the plugin.
	Code string
	// Message is one sentence for the operator. It must not hold a secret.
	Message string
	// Pointer is the JSON Pointer of the config field to blame, for ClassConfig.
	Pointer string
	// RetryAfter is how long to wait, when the other side requests it.
	RetryAfter time.Duration
	// Source is the side that caused the error.
	Source Source

	cause error
}

// Error returns the code and the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// Unwrap returns the error this one was made from, or nil.
func (e *Error) Unwrap() error { return e.cause }

// WithCode returns a copy of e with another code.
func (e *Error) WithCode(code string) *Error {
	c := *e
	c.Code = code
	return &c
}

// From returns a copy of e that blames source.
func (e *Error) From(source Source) *Error {
	c := *e
	c.Source = source
	return &c
}

// Transient returns an error that a retry may resolve. It returns nil for nil, as
// do all helpers that take an error.
func Transient(err error) error { return classed(ClassTransient, "transient", SourceDownstream, err) }

// Permanent returns an error that a retry cannot resolve.
func Permanent(err error) error { return classed(ClassPermanent, "permanent", SourceDownstream, err) }

// NotConnected returns the error of a lost session: Open must be called again.
func NotConnected(err error) error {
	return classed(ClassNotConnected, "not_connected", SourceDownstream, err)
}

// Throttled returns the error of a rate limit. after is the pause that the other side
// requests, or 0.
func Throttled(err error, after time.Duration) error {
	out := classed(ClassThrottled, "throttled", SourceDownstream, err)
	if e, ok := errors.AsType[*Error](out); ok {
		e.RetryAfter = after
	}
	return out
}

// ConfigError returns an error that needs a change of the config
// field at pointer ("/path"; "" for the whole config).
func ConfigError(pointer string, err error) error {
	out := classed(ClassConfig, "config", SourcePlugin, err)
	if e, ok := errors.AsType[*Error](out); ok {
		e.Pointer = pointer
	}
	return out
}

// Errorf returns an error of the given class and code.
func Errorf(class Class, code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// classed wraps err; an Error keeps its code and pointer and changes class.
func classed(class Class, code string, source Source, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		c := *e
		c.Class = class
		return &c
	}
	return &Error{Class: class, Code: code, Message: sentence(err), Source: source, cause: err}
}

// sentence returns the text of an error without the path and the query of an
// unreachable URL: those of webhooks are secrets.
func sentence(err error) string {
	text := err.Error()
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return text
	}
	where := "an address"
	if u, err := url.Parse(failed.URL); err == nil && u.Host != "" {
		where = u.Host
	}
	return strings.ReplaceAll(text, strconv.Quote(failed.URL), where)
}

// AsError returns err as an *Error. One that already is keeps everything; a
// deadline, a cancelled context and a network error are Transient, and so is
// everything else: an unknown failure must not lose events. nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	out := &Error{Class: ClassTransient, Code: "error", Message: sentence(err), cause: err}
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		out.Code, out.Source = "deadline_exceeded", SourceDownstream
	case errors.Is(err, context.Canceled):
		out.Code = "cancelled"
	case errors.As(err, &network):
		out.Code, out.Source = "network", SourceDownstream
	}
	return out
}
