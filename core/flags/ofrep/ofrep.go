// Package ofrep serves flags to OpenFeature providers by the OpenFeature Remote
// Evaluation Protocol, version 0.3.0.
//
// The protocol has one request for one flag and one for all flags of a project.
// Both describe the subject by an evaluation context: targetingKey is the
// distinct id, groups are the groups, and all other attributes are person
// properties. Evaluation is that of /decide (flags/decide), stored properties and
// budgets included; only the request and the answer differ.
//
// Providers check the type of a value against the type that the code asks for.
// So a flag has one type for everyone (values.go): boolean; or string, the
// variant; or the type of its payloads, if each value that it can have has a
// payload of that type. A value that does not have the type of the flag, such as
// the value of a multivariate flag that is off, is left out of the answer, which
// stands for the default of the code.
//
// Everything about a flag that does not depend on the subject is encoded once for
// each set of compiled flags (table.go). Answers always have a variant, and
// failures always have details, because widely used providers require them.
package ofrep

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// Changes notifies clients of changes.
type Changes interface {
	// StreamPath returns the path of the event stream for a project key.
	StreamPath(key string) string
	// Await makes the flags in memory at least as new as a client has been notified
	// of: a revision of the stream and a time in whole seconds. Each may be zero.
	Await(ctx context.Context, projectID, revision int64, modified time.Time) error
}

// reason is a reason of the protocol.
type reason string

// The reasons of the protocol. It has no others.
const (
	reasonStatic    reason = "STATIC"
	reasonTargeting reason = "TARGETING_MATCH"
	reasonSplit     reason = "SPLIT"
	reasonDisabled  reason = "DISABLED"
	reasonUnknown   reason = "UNKNOWN"
)

// Codes of errors of the protocol.
const (
	codeParse        = "PARSE_ERROR"
	codeNoTarget     = "TARGETING_KEY_MISSING"
	codeContext      = "INVALID_CONTEXT"
	codeGeneral      = "GENERAL"
	codeFlagNotFound = "FLAG_NOT_FOUND"
)

// failure describes a flag without a result.
type failure struct {
	code    string
	details string
	server  bool // the request may succeed later
}

// failures has the failure of each cause.
var failures = [eval.Causes]failure{
	eval.CauseDefinition:  {code: codeParse, details: "The definition of the flag cannot be read."},
	eval.CauseOperator:    {code: codeGeneral, details: "A plugin with an operator of the flag does not answer.", server: true},
	eval.CauseCohort:      {code: codeGeneral, details: "A cohort of the flag is missing or cannot be evaluated."},
	eval.CauseDependency:  {code: codeGeneral, details: "A flag that the flag depends on is missing or cannot be evaluated."},
	eval.CauseCycle:       {code: codeGeneral, details: "The flag depends on itself."},
	eval.CauseUnavailable: {code: codeGeneral, details: "Stored data that the flag needs cannot be read now.", server: true},
	eval.CauseTooLarge:    {code: codeParse, details: "The regular expressions of the flag are too large."},
	eval.CauseText:        {code: codeContext, details: "A text of the context is too long for a regular expression of the flag."},
	eval.CauseBudget:      {code: codeContext, details: "Comparing the texts of the context needs too much work."},
}

// failureOf returns the failure of a cause, also of one that has no text here.
func failureOf(c eval.Cause) failure {
	if int(c) < len(failures) && failures[c].code != "" {
		return failures[c]
	}
	return failure{code: codeGeneral, details: "The flag cannot be evaluated: " + c.Code() + "."}
}
