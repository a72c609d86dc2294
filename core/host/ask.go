package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// CheckResult is the answer to "does it work?", tried with the real thing.
type CheckResult struct {
	OK bool `json:"ok"`
	// Error says why not, or that nobody can tell.
	Error string `json:"error,omitempty"`
	// Code is the plugin's own for the error, or unchecked when the plugin was
	// not asked or has no check.
	Code string `json:"code,omitempty"`
	// LatencyMS is how long it took, in milliseconds.
	LatencyMS float64 `json:"latency_ms"`
}

// unchecked is the code of a check that did not take place.
const unchecked = "unchecked"

// Check has a running instance try the real thing, without leaving a trace. It
// reports whether there is an instance of that name.
func (h *Host) Check(ctx context.Context, name string) (CheckResult, bool) {
	s := h.find(name)
	if s == nil {
		return CheckResult{}, false
	}
	return s.check(ctx), true
}

func (s *supervisor) check(ctx context.Context) CheckResult {
	session := s.gate.enter()
	if session == nil {
		st := s.Status()
		return CheckResult{Code: unchecked, Error: "the plugin is " + string(st.State) + ": " + st.LastError}
	}
	defer session.busy.leave()
	if !slices.ContainsFunc(session.info.GetFeatures(), func(f string) bool { return strings.HasSuffix(f, "/check/v1") }) {
		return CheckResult{Code: unchecked, Error: "the plugin has no check of its own; it is running and healthy"}
	}
	var out *pluginv1.CheckResponse
	start := time.Now()
	err := session.call(ctx, "check", session.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = session.plugin.Check(ctx, &pluginv1.CheckRequest{InstanceId: s.name})
		return accepted(out.GetOk()), err
	})
	result := CheckResult{OK: err == nil && out.GetOk() && out.GetError() == nil, LatencyMS: float64(time.Since(start).Microseconds()) / 1000}
	switch refused := errorFromProto(out.GetError(), session.scrub); {
	case err != nil:
		result.Error, result.Code = session.scrub.clean(status.Convert(err).Message()), "call_failed"
	case refused != nil:
		result.Error, result.Code = refused.Message, refused.Code
	case !result.OK:
		result.Error, result.Code = "the check neither passed nor failed", "contract_breach"
	}
	return result
}

// Restart brings up the same config in another process, beside the one that
// serves, and lets it take over; an instance that waits for the operator tries
// again. It reports whether there is one of that name.
func (h *Host) Restart(name string) bool {
	s := h.find(name)
	if s != nil {
		s.restart()
	}
	return s != nil
}
