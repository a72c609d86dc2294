package host

import (
	"context"
	"errors"
	"sync"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// SinkInstance is a configured sink. It exists before its process and stays while
// processes come and go. Its methods are safe for concurrent use.
type SinkInstance struct {
	*instance

	id       string                               // of the instance for the plugin
	progress func(s *conn.Session) *conn.Progress // of its records in a session
	lost     func(s *conn.Session)                // of a partition: it is not open any more
	turn     chan struct{}                        // held by the partition that is written

	mu         sync.Mutex
	properties sdk.SinkProperties
	committed  uint64
	sessions   uint64
}

var _ kindHandler = (*SinkInstance)(nil)

func newSinkInstance(i *instance) *SinkInstance {
	return &SinkInstance{
		instance: i, id: i.name, progress: func(s *conn.Session) *conn.Progress { return &s.Progress },
		properties: sdk.SinkProperties{MaxInFlight: 1}, turn: make(chan struct{}, 1),
	}
}

// Properties returns the properties that the sink reported when it was last opened,
// within the limits of the host, and the weakest ones before that. They are final
// once Ready has returned, until the next time it blocks.
func (i *SinkInstance) Properties() sdk.SinkProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.properties
}

// Resume sets the sequence number through which records are known to be committed, as
// of an earlier run. The sink receives it at the next Open. It never decreases.
func (i *SinkInstance) Resume(committedThrough uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.committed = max(i.committed, committedThrough)
}

// CommittedThrough returns the highest sequence number known to be committed.
func (i *SinkInstance) CommittedThrough() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.committed
}

// Session returns how often the sink has been opened. When it has changed since a
// batch was answered with Staged, staged records above CommittedThrough may be lost
// and must be sent again.
func (i *SinkInstance) Session() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sessions
}

func (i *SinkInstance) open(ctx context.Context, s *conn.Session) (*openResult, *sdk.Error, error) {
	through := i.CommittedThrough()
	i.progress(s).Sent.Raise(through)
	var out *sinkv1.OpenResponse
	err := s.Call(ctx, "open", s.Timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = s.Sink.Open(ctx, &sinkv1.OpenRequest{InstanceId: i.id, CommittedThrough: through})
		return metrics.Outcome(out.GetOpened()), err
	})
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, wire.ErrorFromProto(out.GetError(), s.Redactor), err
	}
	p := wire.LimitBatchBytes(wire.SinkPropertiesFromProto(out.GetProperties()), s.Info.GetMaxMessageBytes())
	i.progress(s).CommitOnFlush.Store(p.Commit == sdk.CommitOnFlush)
	return &openResult{
		commit: func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.properties = p
			i.sessions++
		},
		compatible: p == i.Properties() && p.Commit != sdk.CommitOnFlush,
	}, nil, nil
}

func (i *SinkInstance) handOver(ctx context.Context, s *conn.Session) {
	s.FlushStaged(ctx, sinkv1.FlushRequest_REASON_DRAIN)
	i.onEnd(s)
}

func (i *SinkInstance) onEnd(s *conn.Session) { i.Resume(i.progress(s).Committed.Load()) }

// Write sends a batch to the plugin. After an error, always a *sdk.Error, the outcome is
// unknown: send the same batch with the same ID again, after Ready. Otherwise the
// result is the plugin's answer: Committed, Staged, Partial with failures within the
// batch, or Rejected with a reason. A batch that is too large for the plugin is
// Rejected as permanent, so that its halves can be tried.
func (i *SinkInstance) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s := i.gate.Enter()
	if s == nil {
		return sdk.WriteResult{}, errNotRunning()
	}
	defer s.InFlight.Done()
	return i.write(ctx, s, b)
}

func errNotRunning() *sdk.Error {
	return wire.UnknownOutcome("plugin_not_running", "the plugin is not running")
}

func (i *SinkInstance) write(ctx context.Context, s *conn.Session, b *sdk.Batch) (sdk.WriteResult, error) {
	i.progress(s).Sent.Raise(b.LastSeq)
	committed := i.progress(s).Committed.Load()
	var result sdk.WriteResult
	var violation *wire.ContractViolation
	err := s.Call(ctx, "write_batch", s.Timeouts.Call, func(ctx context.Context) (string, error) {
		out, err := s.Sink.WriteBatch(ctx, wire.BatchToProto(i.id, s.Generation, b))
		if err != nil {
			return "", err
		}
		result, err = wire.WriteResultFromProto(out, b, i.progress(s).Sent.Load(), committed, s.Redactor)
		if errors.As(err, &violation) {
			return "contract_breach", nil
		}
		return result.Outcome.String(), nil
	})
	switch {
	case err != nil:
		refused, unknown := i.callError(ctx, s, err)
		if refused != nil {
			i.recordFailure(ctx, refused)
			return sdk.WriteResult{Outcome: sdk.Rejected, Err: refused}, nil
		}
		i.recordFailure(ctx, unknown)
		return sdk.WriteResult{}, unknown
	case violation != nil:
		return sdk.WriteResult{}, i.rejectAnswer(violation)
	}
	s.RecordAnswer()
	if result.Outcome == sdk.Rejected {
		i.recordFailure(ctx, result.Err)
	} else {
		i.recordProgress()
	}
	i.applyResult(s, b, result)
	return result, nil
}

// handleInstanceError is that of instance. A partition that lost its connection is opened
// again by its next caller.
func (i *SinkInstance) handleInstanceError(s *conn.Session, err *sdk.Error) {
	if i.lost != nil && err.Class == sdk.ClassNotConnected {
		i.lost(s)
		return
	}
	i.instance.handleInstanceError(s, err)
}

// applyResult updates the committed sequence number, and reports an error of the
// instance.
func (i *SinkInstance) applyResult(s *conn.Session, b *sdk.Batch, r sdk.WriteResult) {
	switch r.Outcome {
	case sdk.Rejected:
		i.handleInstanceError(s, r.Err)
	case sdk.Staged:
		i.progress(s).Committed.Raise(r.CommittedThrough)
		i.Resume(r.CommittedThrough)
	case sdk.Committed:
		i.mu.Lock()
		// Answers may arrive out of order: only the next batch advances the number.
		if b.FirstSeq <= i.committed+1 {
			i.committed = max(i.committed, b.LastSeq)
		}
		i.mu.Unlock()
	default: // Partial: the failed records are not committed
	}
}

// Flush requests that the plugin commit everything up to upTo. The error is as for
// Write, or the plugin's own.
func (i *SinkInstance) Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s := i.gate.Enter()
	if s == nil {
		return sdk.FlushResult{}, errNotRunning()
	}
	defer s.InFlight.Done()
	return i.flush(ctx, s, reason, upTo)
}

func (i *SinkInstance) flush(ctx context.Context, s *conn.Session, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	committed := i.progress(s).Committed.Load()
	var out *sinkv1.FlushResponse
	err := s.Call(ctx, "flush", s.Timeouts.Flush, func(ctx context.Context) (_ string, err error) {
		out, err = s.Sink.Flush(ctx, &sinkv1.FlushRequest{
			InstanceId: i.id, Reason: sinkv1.FlushRequest_Reason(reason), UpToSeq: upTo,
		})
		return metrics.Outcome(out.GetFlushed()), err
	})
	if err != nil {
		return sdk.FlushResult{}, i.anyCallError(ctx, s, err)
	}
	s.RecordAnswer()
	if refused := wire.ErrorFromProto(out.GetError(), s.Redactor); refused != nil {
		i.recordFailure(ctx, refused)
		i.handleInstanceError(s, refused)
		return sdk.FlushResult{}, refused
	}
	result, violation := wire.FlushResultFromProto(out, max(i.progress(s).Sent.Load(), upTo), committed, s.Redactor)
	if violation != nil {
		return sdk.FlushResult{}, i.rejectAnswer(violation)
	}
	i.progress(s).Committed.Raise(result.CommittedThrough)
	i.Resume(result.CommittedThrough)
	return result, nil
}
