package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/sdk"
)

// blamesRow reports whether the database refused what a row holds: a value out
// of range or of a form it does not know (22), a constraint an operator has
// added (23), a text too long for an index (54).
func blamesRow(err error) bool {
	switch state(err) {
	case "22", "23", "54":
		return true
	}
	return false
}

// state is the class of an error of the server, "" for another error.
func state(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && len(refused.Code) == 5 {
		return refused.Code[:2]
	}
	return ""
}

// classify returns the error with the class that the host acts on. A message of the
// server is kept; one of the library may hold the URL and is not.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*sdk.Error](err); ok {
		return known
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
			return sdk.Errorf(sdk.ClassTransient, "connect", "cannot connect to %s", connect.Config.Host).From(sdk.SourceDownstream)
		}
		return sdk.Transient(err)
	}
	out := &sdk.Error{Class: sdk.ClassTransient, Code: "sqlstate_" + refused.Code, Message: refused.Message, Source: sdk.SourceDownstream}
	switch state(err) {
	case "28", "3D": // authentication or unknown database
		out.Class, out.Pointer = sdk.ClassConfig, "/url"
	case "42", "3F": // no such table, no right to it, no such schema
		out.Class, out.Pointer = sdk.ClassConfig, "/table"
	case "22", "23", "54":
		out.Class = sdk.ClassPermanent
	case "53": // disk full, out of memory, too many connections
		out.Class = sdk.ClassThrottled
	}
	return out
}
