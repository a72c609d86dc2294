package host

import (
	"context"
	"slices"
	"strings"
	"time"

	grpcstatus "google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// CheckResult is the result of a plugin's own end-to-end check.
type CheckResult struct {
	OK bool `json:"ok"`
	// Error is why the check failed or could not be made.
	Error string `json:"error,omitempty"`
	// Code is the plugin's code of the error, or unchecked when the plugin does not
	// run or has no check.
	Code string `json:"code,omitempty"`
	// LatencyMS is the duration in milliseconds.
	LatencyMS float64 `json:"latency_ms"`
}

// unchecked is the code of a check that was not made.
const unchecked = "unchecked"

// Check runs the check of a running instance, which leaves no trace in its service. It
// reports whether the instance exists.
func (h *Host) Check(ctx context.Context, name string) (CheckResult, bool) {
	s := h.find(name)
	if s == nil {
		return CheckResult{}, false
	}
	return s.check(ctx), true
}

func (i *instance) check(ctx context.Context) CheckResult {
	s := i.gate.Enter()
	if s == nil {
		st := i.status.Get()
		return CheckResult{Code: unchecked, Error: "the plugin is " + string(st.State) + ": " + st.LastError}
	}
	defer s.InFlight.Done()
	if !slices.ContainsFunc(s.Info.GetFeatures(), func(f string) bool { return strings.HasSuffix(f, "/check/v1") }) {
		return CheckResult{Code: unchecked, Error: "the plugin has no check of its own; it is running and healthy"}
	}
	var out *pluginv1.CheckResponse
	start := time.Now()
	err := s.Call(ctx, "check", s.Timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = s.Plugin.Check(ctx, &pluginv1.CheckRequest{InstanceId: i.name})
		return metrics.Outcome(out.GetOk()), err
	})
	result := CheckResult{OK: err == nil && out.GetOk() && out.GetError() == nil, LatencyMS: float64(time.Since(start).Microseconds()) / 1000}
	switch refused := wire.ErrorFromProto(out.GetError(), s.Redactor); {
	case err != nil:
		result.Error, result.Code = s.Redactor.Redact(grpcstatus.Convert(err).Message()), "call_failed"
	case refused != nil:
		result.Error, result.Code = refused.Message, refused.Code
	case !result.OK:
		result.Error, result.Code = "the check neither passed nor failed", "contract_breach"
	}
	return result
}
