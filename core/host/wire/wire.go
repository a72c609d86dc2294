// Package wire converts between the SDK's types and the protobuf messages of the
// plugin protocol, and checks what a plugin answers.
//
// A plugin may be broken, outdated or hostile, so every conversion from a message
// limits sizes, counts and durations, redacts secrets in texts and replaces
// unknown enum values by the weakest one. An answer that contradicts the request
// or an earlier answer is a *ContractViolation; its content is not used. The zero
// value of a message never means success.
//
// The package is pure: it makes no calls and keeps no state, apart from
// KnownPrograms, the memory of one session with a matcher.
package wire

import (
	"time"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// Limits of the host on values that a plugin reports.
const (
	maxInFlight   = 64
	maxBatchBytes = 4 << 20
	minRetryAfter = 100 * time.Millisecond
	maxRetryAfter = time.Hour
)

// Kinds are the kinds of instances in the protocol, by their name in the settings.
var Kinds = map[string]pluginv1.Kind{
	settings.KindSink: pluginv1.Kind_KIND_SINK, settings.KindNotifier: pluginv1.Kind_KIND_NOTIFIER, settings.KindMatcher: pluginv1.Kind_KIND_MATCHER,
}

// ContractViolation is an answer that violates the contract; its content is not
// used.
type ContractViolation struct {
	// Kind is a label: no_outcome, result_count, watermark_ahead and so on.
	Kind string
	// Detail is for the operator.
	Detail string
}

func (v *ContractViolation) Error() string { return v.Kind + ": " + v.Detail }

// Diagnostic is a remark of a plugin about its config.
type Diagnostic struct {
	Severity string `json:"severity"`
	Pointer  string `json:"pointer"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
}

// Unavailable is the error of a call that could not be made.
func Unavailable(message string) *sdk.Error { return UnknownOutcome("plugin_unavailable", message) }

// UnknownOutcome is the error of a call whose outcome is unknown.
func UnknownOutcome(code, message string) *sdk.Error {
	return NewError(sdk.ClassTransient, code, message)
}

// NewError returns an error of a plugin.
func NewError(class sdk.Class, code, message string) *sdk.Error {
	return &sdk.Error{Class: class, Code: code, Message: message, Source: sdk.SourcePlugin}
}

// ErrorFromProto converts an error and redacts secrets; nil stays nil. An unknown
// class becomes Transient, an unknown source stays unset.
func ErrorFromProto(e *pluginv1.Error, redactor *secret.Redactor) *sdk.Error {
	if e == nil {
		return nil
	}
	out := &sdk.Error{
		Class: sdk.Class(e.GetClass()), Code: text.Ellipsis(redactor.Redact(e.GetCode()), 100), Message: text.Ellipsis(redactor.Redact(e.GetMessage()), 1000),
		Pointer: e.GetPointer(),
	}
	if e.GetClass() <= pluginv1.Error_CLASS_UNSPECIFIED || e.GetClass() > pluginv1.Error_CLASS_INTERNAL {
		out.Class = sdk.ClassTransient
	}
	if e.GetSource() > 0 && e.GetSource() <= pluginv1.Error_SOURCE_DOWNSTREAM {
		out.Source = sdk.Source(e.GetSource())
	}
	if out.Code == "" {
		out.Code = out.Class.String()
	}
	if e.GetRetryAfter() != nil {
		out.RetryAfter = min(max(e.GetRetryAfter().AsDuration(), minRetryAfter), maxRetryAfter)
	}
	return out
}

// DiagnosticsFromProto converts a plugin's remarks and redacts secrets.
func DiagnosticsFromProto(items []*pluginv1.Diagnostic, redactor *secret.Redactor) []Diagnostic {
	names := map[pluginv1.Diagnostic_Severity]string{
		pluginv1.Diagnostic_SEVERITY_WARNING: "warning", pluginv1.Diagnostic_SEVERITY_INFO: "info",
	}
	var out []Diagnostic
	for _, d := range items {
		severity := names[d.GetSeverity()]
		if severity == "" {
			severity = "error"
		}
		out = append(out, Diagnostic{
			Severity: severity, Pointer: redactor.Redact(d.GetPointer()),
			Summary: text.Ellipsis(redactor.Redact(d.GetSummary()), 500), Detail: text.Ellipsis(redactor.Redact(d.GetDetail()), 2000),
		})
	}
	return out
}
