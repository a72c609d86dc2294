package conn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// Session is one generation of an instance in a running process. Every call has a
// deadline and is measured. Its methods are safe for concurrent use.
type Session struct {
	*Conn

	Settings   settings.Instance
	Executable string
	Generation uint64
	// Digest identifies the resolved config.
	Digest   string
	Timeouts settings.Timeouts
	Redactor *secret.Redactor

	// InFlight counts the calls from outside the host.
	InFlight InFlight
	// LateCalls counts consecutive calls that ended at their deadline since the last
	// health check.
	LateCalls atomic.Int32
	deadlines deadlines
	// Progress is the state of a sink's records.
	Progress Progress
	parts    parts

	shared  *sharedProcess
	config  *secret.Config
	metrics *metrics.Metrics
	tracing *Tracing
}

// deadlines counts the calls that ended at their deadline in a row. Calls that waited at
// the same time count as one.
type deadlines struct {
	mu   sync.Mutex
	n    int
	last time.Time
}

// RecordDeadline records that a call of the session's own time limit ended at it. It
// returns how many such calls in a row had no answer, each of which began after the
// end of the one before.
func (s *Session) RecordDeadline() int {
	d := &s.deadlines
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if began := now.Add(-s.Timeouts.Call); began.After(d.last) {
		d.n, d.last = d.n+1, now
	}
	return d.n
}

// RecordAnswer records that the plugin has answered a call.
func (s *Session) RecordAnswer() {
	s.LateCalls.Store(0)
	d := &s.deadlines
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n = 0
}

// Progress is how far the records of a sink have got in one session.
type Progress struct {
	// Sent is the highest sequence number sent.
	Sent Watermark
	// Committed is the highest committed sequence number that the sink reported for
	// staged records.
	Committed Watermark
	// CommitOnFlush is true for a sink that stages records until a flush.
	CommitOnFlush atomic.Bool
}

// Watermark is a number that only grows. It is safe for concurrent use.
type Watermark struct{ value atomic.Uint64 }

// Load returns the number.
func (w *Watermark) Load() uint64 { return w.value.Load() }

// Raise makes the number at least n.
func (w *Watermark) Raise(n uint64) {
	for {
		old := w.value.Load()
		if n <= old || w.value.CompareAndSwap(old, n) {
			return
		}
	}
}

// ErrNotOpen reports a healthy process in which the instance needs an Open.
var ErrNotOpen = errors.New("the plugin says that the instance is not open")

// ErrDegraded reports an instance that serves with a problem.
var ErrDegraded = errors.New("the plugin says that the instance has a problem")

// Call runs fn with a deadline and records duration and outcome. fn returns the
// outcome label of an answered call.
func (s *Session) Call(ctx context.Context, method string, limit time.Duration, fn func(context.Context) (outcome string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, end := s.tracing.startSpan(ctx, s, method)
	s.metrics.InFlight.WithLabelValues(s.Settings.Name).Inc()
	defer s.metrics.InFlight.WithLabelValues(s.Settings.Name).Dec()
	start := time.Now()
	outcome, err := fn(ctx)
	if err != nil {
		outcome = status.Code(err).String()
	}
	end(outcome, err)
	s.metrics.Calls.WithLabelValues(s.Settings.Name, method, outcome).Observe(time.Since(start).Seconds())
	return err
}

// CallFailure returns the failure of a call while the instance starts.
func (s *Session) CallFailure(ctx context.Context, method string, err error) *lifecycle.Failure {
	return s.callFailure(ctx, method, err, s.Redactor)
}

// Configure sends the config.
func (s *Session) Configure(ctx context.Context) (*pluginv1.ConfigureResponse, error) {
	return s.configure(ctx, s.Settings.Name)
}

func (s *Session) configure(ctx context.Context, id string) (*pluginv1.ConfigureResponse, error) {
	var out *pluginv1.ConfigureResponse
	err := s.Call(ctx, "configure", s.Timeouts.Start, func(ctx context.Context) (_ string, err error) {
		out, err = s.Plugin.Configure(ctx, &pluginv1.ConfigureRequest{
			InstanceId: id, Generation: s.Generation, Kind: wire.Kinds[s.Settings.Kind],
			Config: &pluginv1.Config{ConfigJson: s.config.JSON, Secrets: s.config.Values},
		})
		return metrics.Outcome(out.GetAccepted()), err
	})
	return out, err
}

// CheckHealth returns nil when the process serves and the instance is open, an error
// that wraps ErrNotOpen when only the instance is not, and one that wraps ErrDegraded
// when it serves with a problem.
func (s *Session) CheckHealth(ctx context.Context) error {
	var out *pluginv1.HealthResponse
	err := s.Call(ctx, "health", s.Timeouts.Health, func(ctx context.Context) (_ string, err error) {
		out, err = s.Plugin.Health(ctx, &pluginv1.HealthRequest{InstanceIds: []string{s.Settings.Name}})
		return metrics.Outcome(out.GetServing()), err
	})
	if err != nil {
		return fmt.Errorf("no health report: %s", status.Convert(err).Message())
	}
	if !out.GetServing() {
		return errors.New("the plugin says that it does not serve")
	}
	for _, in := range out.GetInstances() {
		if in.GetInstanceId() == s.Settings.Name {
			return s.instanceError(in)
		}
	}
	return ErrNotOpen
}

// instanceError returns the problem that a plugin reports of an instance, nil without one.
func (s *Session) instanceError(in *pluginv1.InstanceHealth) error {
	kind := ErrNotOpen
	switch in.GetStatus() {
	case pluginv1.InstanceHealth_STATUS_READY:
		return nil
	case pluginv1.InstanceHealth_STATUS_DEGRADED:
		kind = ErrDegraded
	default:
	}
	if reported := wire.ErrorFromProto(in.GetError(), s.Redactor); reported != nil {
		return fmt.Errorf("%w: %w", kind, reported)
	}
	return kind
}

// CloseStale closes an instance of the same name that an earlier server may have left
// in an attached process.
func (s *Session) CloseStale(ctx context.Context) error {
	if !s.Attached() {
		return nil
	}
	_, err := s.closeInstance(ctx, s.Settings.Name)
	return err
}

// Exclusive reports whether two generations must not run at the same time: the plugin
// requires it, or both would be in one attached process.
func (s *Session) Exclusive() bool { return s.Info.GetExclusive() || s.Attached() }

// FlushStaged has a sink commit its staged records before it is closed, also those of its
// parts. The next session receives again what the sink does not confirm.
func (s *Session) FlushStaged(ctx context.Context, reason sinkv1.FlushRequest_Reason) {
	s.flushStaged(ctx, s.Settings.Name, &s.Progress, reason)
	for id, progress := range s.parts.all() {
		s.flushStaged(ctx, id, progress, reason)
	}
}

func (s *Session) flushStaged(ctx context.Context, id string, p *Progress, reason sinkv1.FlushRequest_Reason) {
	if !p.CommitOnFlush.Load() {
		return
	}
	sent := p.Sent.Load()
	if p.Committed.Load() >= sent {
		return
	}
	_ = s.Call(ctx, "flush", s.Timeouts.Flush, func(ctx context.Context) (string, error) {
		out, err := s.Sink.Flush(ctx, &sinkv1.FlushRequest{InstanceId: id, Reason: reason, UpToSeq: sent})
		if err == nil && out.GetError() == nil {
			if r, violation := wire.FlushResultFromProto(out, sent, p.Committed.Load(), s.Redactor); violation == nil {
				p.Committed.Raise(r.CommittedThrough)
			}
		}
		return metrics.Outcome(out.GetFlushed()), err
	})
}

// End closes the instance and leaves the process. The last instance ends the process.
// With answers false it terminates the process for all its instances. End returns
// when the instance is closed or cannot be, and after the last instance when the
// process is reaped.
func (s *Session) End(ctx context.Context, answers bool) {
	clean := false
	switch {
	case !answers:
		s.shared.kill(ctx, s.Timeouts)
	case s.Alive():
		if !s.Attached() && s.shared.instanceCount() == 1 {
			s.proc.ExpectExit()
		}
		clean = s.finish(ctx)
	}
	s.shared.leave(ctx, s.Settings.Name, s.Timeouts, clean)
}

// finish waits for the running calls, commits staged records and closes the instance.
// It gives up when the plugin does not answer, and reports whether the instance is
// closed.
func (s *Session) finish(ctx context.Context) bool {
	if !s.InFlight.WaitIdle(ctx, s.Timeouts.Drain) {
		return false
	}
	if err := s.CheckHealth(ctx); err != nil && !errors.Is(err, ErrNotOpen) && !errors.Is(err, ErrDegraded) {
		return false
	}
	s.FlushStaged(ctx, sinkv1.FlushRequest_REASON_SHUTDOWN)
	for id := range s.parts.all() { // their progress stays, for the next session
		_, _ = s.closeInstance(ctx, id)
	}
	closed, err := s.closeInstance(ctx, s.Settings.Name)
	return err == nil && closed
}

// closeInstance sends Close.
func (s *Session) closeInstance(ctx context.Context, id string) (closed bool, err error) {
	err = s.Call(ctx, "close", s.Timeouts.Flush, func(ctx context.Context) (string, error) {
		out, err := s.Plugin.Close(ctx, &pluginv1.CloseRequest{InstanceId: id})
		closed = out.GetClosed()
		return metrics.Outcome(closed), err
	})
	return closed, err
}
