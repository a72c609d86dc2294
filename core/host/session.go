package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// session is one generation of an instance in a living process. Every call has
// a deadline and is measured.
type session struct {
	*peer

	slot       *slot
	cfg        settings.Instance
	argv       []string
	instance   string
	generation uint64
	digest     string // of the config as it was resolved
	timeouts   settings.Timeouts
	scrub      *scrubber
	metrics    *metrics
	traces     *tracing
	remarks    []Diagnostic // of the plugin, about a config it took

	busy    crowd         // the calls of others that are under way
	late    atomic.Int32  // calls in a row that ended at their deadline
	highest atomic.Uint64 // the highest sequence number sent
	staged  atomic.Uint64 // the highest watermark of staged records heard of
	staging atomic.Bool   // the sink makes records safe by Flush
}

// call runs fn with a deadline and records how long it took and how it ended.
func (s *session) call(ctx context.Context, method string, limit time.Duration, fn func(context.Context) (outcome string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, end := s.traces.start(ctx, s, method)
	s.metrics.inFlight.WithLabelValues(s.instance).Inc()
	defer s.metrics.inFlight.WithLabelValues(s.instance).Dec()
	start := time.Now()
	outcome, err := fn(ctx)
	if err != nil {
		outcome = status.Code(err).String()
	}
	end(outcome, err)
	s.metrics.calls.WithLabelValues(s.instance, method, outcome).Observe(time.Since(start).Seconds())
	return err
}

// configure hands over the config.
func (s *session) configure(ctx context.Context, r *resolved) (*pluginv1.ConfigureResponse, error) {
	var out *pluginv1.ConfigureResponse
	err := s.call(ctx, "configure", s.timeouts.Start, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Configure(ctx, &pluginv1.ConfigureRequest{
			InstanceId: s.instance, Generation: s.generation, Kind: kinds[s.cfg.Kind],
			Config: &pluginv1.Config{ConfigJson: r.json, Secrets: r.secrets},
		})
		return accepted(out.GetAccepted()), err
	})
	return out, err
}

func accepted(ok bool) string {
	if ok {
		return "ok"
	}
	return "refused"
}

// openSink connects the instance.
func (s *session) openSink(ctx context.Context, through uint64) (*sinkv1.OpenResponse, error) {
	var out *sinkv1.OpenResponse
	err := s.call(ctx, "open", s.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = s.sink.Open(ctx, &sinkv1.OpenRequest{InstanceId: s.instance, CommittedThrough: through})
		return accepted(out.GetOpened()), err
	})
	return out, err
}

// healthy asks whether the process takes work and the instance is open. An
// empty answer is not a healthy one.
func (s *session) healthy(ctx context.Context) error {
	var out *pluginv1.HealthResponse
	err := s.call(ctx, "health", s.timeouts.Health, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Health(ctx, &pluginv1.HealthRequest{InstanceIds: []string{s.instance}})
		return accepted(out.GetServing()), err
	})
	if err != nil {
		return fmt.Errorf("no health report: %s", status.Convert(err).Message())
	}
	if !out.GetServing() {
		return fmt.Errorf("the plugin says that it does not serve")
	}
	for _, in := range out.GetInstances() {
		if in.GetInstanceId() == s.instance && in.GetStatus() == pluginv1.InstanceHealth_STATUS_READY {
			return nil
		}
	}
	return errNotOpen
}

// errNotOpen says that the process is well but the instance needs an Open.
var errNotOpen = fmt.Errorf("the plugin says that the instance is not open")

// end releases the instance, and takes the process down when nobody else lives
// in it. A process that does not answer is ended for all who live in it. end
// returns when the instance is closed or cannot be, and, if it was the last, the
// process is reaped.
func (s *session) end(ctx context.Context, answers bool) {
	clean := false
	switch {
	case !answers:
		s.slot.kill(ctx, s.timeouts)
	case s.alive():
		if s.proc != nil && s.slot.neighbours() == 1 {
			s.proc.expected()
		}
		clean = s.finish(ctx)
	}
	s.slot.leave(ctx, s.instance, s.timeouts, clean)
}

// flush has a staging sink make safe what it holds, before it is closed. What
// it does not confirm is sent again to the next process.
func (s *session) flush(ctx context.Context, reason sinkv1.FlushRequest_Reason) {
	if !s.staging.Load() {
		return
	}
	highest := s.highest.Load()
	if s.staged.Load() >= highest {
		return
	}
	_ = s.call(ctx, "flush", s.timeouts.Flush, func(ctx context.Context) (string, error) {
		out, err := s.sink.Flush(ctx, &sinkv1.FlushRequest{
			InstanceId: s.instance, Reason: reason, UpToSeq: highest,
		})
		if err == nil && out.GetError() == nil {
			if r, broken := flushFromProto(out, highest, s.staged.Load(), s.scrub); broken == nil {
				raise(&s.staged, r.CommittedThrough)
			}
		}
		return accepted(out.GetFlushed()), err
	})
}

// finish lets the calls under way come to their end, has the plugin make safe
// what it holds, and closes the instance. It gives up at the first silence, and
// reports whether the instance is closed.
func (s *session) finish(ctx context.Context) bool {
	if !s.busy.gone(ctx, s.timeouts.Drain) {
		return false
	}
	if err := s.healthy(ctx); err != nil && !errors.Is(err, errNotOpen) {
		return false
	}
	s.flush(ctx, sinkv1.FlushRequest_REASON_SHUTDOWN)
	var out *pluginv1.CloseResponse
	err := s.call(ctx, "close", s.timeouts.Flush, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Close(ctx, &pluginv1.CloseRequest{InstanceId: s.instance})
		return accepted(out.GetClosed()), err
	})
	return err == nil && out.GetClosed()
}
