package host

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
)

// maxLateCalls is how many consecutive calls may end at their deadline before the
// supervisor checks the process.
const maxLateCalls = 3

// maxDeadlines is how many calls in a row may have no answer before the process is
// restarted, although it reports that it is healthy.
const maxDeadlines = 5

// instance is what the kinds of instances share: the gate to the current session, and
// reports of failed calls to the supervisor. It exists before the process and stays
// while processes come and go.
type instance struct {
	name    string
	gate    *conn.Gate
	mailbox *mailbox
	status  *status.Tracker
	target  *target
	metrics *metrics.Metrics
	log     *zap.Logger

	// progressed is set when the plugin has done its work, or when the cause of its
	// exits is known. The supervisor then forgets earlier exits.
	progressed atomic.Bool
	forgive    func(*instance) // for all instances of the plugin
}

// recordProgress records that the plugin has done its work: earlier exits do not count
// any more.
func (i *instance) recordProgress() {
	i.status.RecordSuccess()
	if !i.progressed.Load() {
		i.progressed.Store(true)
	}
}

// recordFailure records a failed call. Permanent and Unsupported errors are answers and do not
// count: the caller goes on without a result.
func (i *instance) recordFailure(ctx context.Context, err *sdk.Error) {
	if ctx.Err() == nil && err.Class != sdk.ClassPermanent && err.Class != sdk.ClassUnsupported {
		i.status.RecordFailure(err)
	}
}

// ForgiveExits records that the cause of the latest exits is known and gone, such as an
// event that is a dead letter now. They do not count for a quarantine, also not for
// other instances in the same process.
func (i *instance) ForgiveExits() { i.forgive(i) }

// Name returns the instance's name in the configuration.
func (i *instance) Name() string { return i.name }

// Process names the process of the instance. Instances with another name never share one.
func (i *instance) Process() string { return i.target.settings().ProcessName() }

// Ready blocks until the instance can be called, or ctx ends.
func (i *instance) Ready(ctx context.Context) error { return i.gate.Wait(ctx) }

// Available reports whether the instance can be called now.
func (i *instance) Available() bool { return i.gate.Current() != nil }

// suspect closes the gate and requests a health check.
func (i *instance) suspect(s *conn.Session, reason string) {
	i.report(s, func(m *messages) { m.suspectReason = reason })
}

// report closes the gate of a session and posts a message about it. Only the caller
// that closes the gate reports.
func (i *instance) report(s *conn.Session, write func(*messages)) {
	if i.gate.Close(s) {
		i.mailbox.postFor(s, write)
	}
}

// callError converts a failed call to the caller's error and reports a suspicious
// process. refused means that the plugin did not process the call; unknown that the
// outcome is unknown.
func (i *instance) callError(ctx context.Context, s *conn.Session, err error) (refused, unknown *sdk.Error) {
	message := s.Redactor.Redact(grpcstatus.Convert(err).Message())
	switch grpcstatus.Code(err) {
	case codes.Unavailable:
		i.suspect(s, "call failed: "+message)
		return nil, wire.Unavailable(message)
	case codes.DeadlineExceeded:
		i.recordLateCall(ctx, s)
		return nil, wire.UnknownOutcome("deadline_exceeded", "the plugin did not answer in time")
	case codes.Canceled:
		if ctx.Err() == nil { // the connection is being closed
			i.suspect(s, "call was cancelled: "+message)
			return nil, wire.Unavailable(message)
		}
		return nil, wire.UnknownOutcome("cancelled", message)
	case codes.ResourceExhausted:
		return wire.NewError(sdk.ClassPermanent, "message_too_large", message), nil
	case codes.Unimplemented:
		return wire.NewError(sdk.ClassUnsupported, "unimplemented", message), nil
	case codes.InvalidArgument:
		i.status.LogRefusal(message)
	default: // a panic in the plugin, or a status that no call of the host causes
	}
	return wire.NewError(sdk.ClassInternal, "internal", message), nil
}

// recordLateCall reports a process whose calls end at their deadline. The caller of a call
// may have had a shorter limit, which is no fault of the process.
func (i *instance) recordLateCall(ctx context.Context, s *conn.Session) {
	if ctx.Err() == nil && s.RecordDeadline() >= maxDeadlines {
		i.gate.Close(s)
		i.mailbox.postFor(s, func(m *messages) {
			m.failure = &lifecycle.Failure{
				State: lifecycle.StateBackoff, Reason: reasonDeadlines,
				Message: fmt.Sprintf("%d calls in a row did not return within %s", maxDeadlines, s.Timeouts.Call),
			}
		})
		return
	}
	if s.LateCalls.Add(1) >= maxLateCalls {
		i.suspect(s, "calls do not return")
	}
}

// reasonDeadlines is the reason of a restart because calls do not return.
const reasonDeadlines = "deadlines"

// anyCallError is callError for calls in which both cases mean the same.
func (i *instance) anyCallError(ctx context.Context, s *conn.Session, err error) *sdk.Error {
	refused, unknown := i.callError(ctx, s, err)
	if refused != nil {
		return refused
	}
	return unknown
}

// handleInstanceError reports an error that concerns the whole instance rather than
// the request.
func (i *instance) handleInstanceError(s *conn.Session, err *sdk.Error) {
	switch err.Class {
	case sdk.ClassNotConnected:
		i.report(s, func(m *messages) { m.reopenReason = err.Error() })
	case sdk.ClassConfig:
		i.report(s, func(m *messages) {
			m.failure = &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "rejected_config", Message: err.Error()}
		})
	default: // the caller handles it
	}
}

// rejectAnswer counts and records an answer that violates the contract. It returns the
// caller's error: the outcome is unknown.
func (i *instance) rejectAnswer(v *wire.ContractViolation) *sdk.Error {
	i.metrics.ContractViolations.WithLabelValues(i.name, v.Kind).Inc()
	i.status.RecordFailure(v)
	i.status.RecordViolation(v)
	return wire.UnknownOutcome("contract_breach", v.Error())
}
