package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// SinkInstance is a configured sink as the rest of the server sees it: it is
// there before the process is and stays while processes come and go. Its
// methods may be called from many goroutines.
type SinkInstance struct {
	name string
	sup  *supervisor
	gate *gate

	mu         sync.Mutex
	properties sdk.SinkProperties
	committed  uint64
	sessions   uint64
}

var _ face = (*SinkInstance)(nil)

func newSinkInstance(name string, sup *supervisor) *SinkInstance {
	return &SinkInstance{name: name, sup: sup, gate: sup.gate, properties: sdk.SinkProperties{MaxInFlight: 1}}
}

// Name is the instance's name in the config.
func (i *SinkInstance) Name() string { return i.name }

// Properties is how the sink wants to be fed: what it said when it was last
// opened, within what the host allows, and the weakest choice before that. They
// are final once Ready has returned, until the next time it blocks.
func (i *SinkInstance) Properties() sdk.SinkProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.properties
}

// Ready blocks until the sink can be written to, or ctx ends.
func (i *SinkInstance) Ready(ctx context.Context) error { return i.gate.wait(ctx) }

// Resume tells the instance what is known to be safe from an earlier run. It is
// passed on at the next Open; it never goes backwards.
func (i *SinkInstance) Resume(committedThrough uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.committed = max(i.committed, committedThrough)
}

// CommittedThrough is the highest sequence number known to be safe.
func (i *SinkInstance) CommittedThrough() uint64 { return i.resumeAt() }

// Session counts how often the sink has been opened. When it has changed since a
// batch was answered with Staged, what was staged and is above CommittedThrough
// may be gone and must be sent again.
func (i *SinkInstance) Session() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sessions
}

// resumeAt is what the plugin is told to be safe.
func (i *SinkInstance) resumeAt() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.committed
}

// open connects a session. What the sink says of itself counts from the adoption
// on.
func (i *SinkInstance) open(ctx context.Context, s *session) (*opening, *sdk.Error, error) {
	through := i.resumeAt()
	raise(&s.highest, through)
	out, err := s.openSink(ctx, through)
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, errorFromProto(out.GetError(), s.scrub), err
	}
	p := fitting(propertiesFromProto(out.GetProperties()), s.info.GetMaxMessageBytes())
	s.staging.Store(p.Commit == sdk.CommitOnFlush)
	return &opening{
		adopt: func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.properties = p
			i.sessions++
		},
		alike: p == i.Properties() && p.Commit != sdk.CommitOnFlush,
	}, nil, nil
}

// handOver has a session make safe what it holds.
func (i *SinkInstance) handOver(ctx context.Context, s *session) {
	s.flush(ctx, sinkv1.FlushRequest_REASON_DRAIN)
	i.left(s)
}

// left keeps what a session that is over had made safe.
func (i *SinkInstance) left(s *session) { i.Resume(s.staged.Load()) }

// Write hands a batch to the plugin. When it returns an error, which is always
// a *sdk.Error, what became of the batch is unknown: send the same batch, with
// the same ID, again, after Ready. Otherwise the result holds the plugin's
// answer: Committed, Staged, Partial with failures that are within the batch,
// or Rejected with a reason. A batch too large for the plugin is Rejected as
// permanent, so that its halves can be tried.
func (i *SinkInstance) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s := i.gate.enter()
	if s == nil {
		return sdk.WriteResult{}, unsure("plugin_not_running", "the plugin is not running")
	}
	defer s.busy.leave()
	raise(&s.highest, b.LastSeq)
	staged := s.staged.Load()
	var result sdk.WriteResult
	var broken *breach
	err := s.call(ctx, "write_batch", s.timeouts.Call, func(ctx context.Context) (string, error) {
		out, err := s.sink.WriteBatch(ctx, batchToProto(i.name, s.generation, b))
		if err != nil {
			return "", err
		}
		result, err = resultFromProto(out, b, s.highest.Load(), staged, s.scrub)
		if errors.As(err, &broken) {
			return "contract_breach", nil
		}
		return result.Outcome.String(), nil
	})
	switch {
	case err != nil:
		refused, unknown := i.sup.failed(ctx, s, err)
		if refused != nil {
			return sdk.WriteResult{Outcome: sdk.Rejected, Err: refused}, nil
		}
		return sdk.WriteResult{}, unknown
	case broken != nil:
		return sdk.WriteResult{}, i.sup.disbelieve(broken)
	}
	s.late.Store(0)
	i.learn(s, b, result)
	return result, nil
}

// Flush asks the plugin to make everything up to upTo safe. The error is as
// that of Write, or the plugin's own.
func (i *SinkInstance) Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s := i.gate.enter()
	if s == nil {
		return sdk.FlushResult{}, unsure("plugin_not_running", "the plugin is not running")
	}
	defer s.busy.leave()
	staged := s.staged.Load()
	var out *sinkv1.FlushResponse
	err := s.call(ctx, "flush", s.timeouts.Flush, func(ctx context.Context) (_ string, err error) {
		out, err = s.sink.Flush(ctx, &sinkv1.FlushRequest{
			InstanceId: i.name, Reason: sinkv1.FlushRequest_Reason(reason), UpToSeq: upTo,
		})
		return accepted(out.GetFlushed()), err
	})
	if err != nil {
		refused, unknown := i.sup.failed(ctx, s, err)
		return sdk.FlushResult{}, cmp.Or(refused, unknown)
	}
	s.late.Store(0)
	if refused := errorFromProto(out.GetError(), s.scrub); refused != nil {
		i.sup.heed(s, refused)
		return sdk.FlushResult{}, refused
	}
	result, broken := flushFromProto(out, max(s.highest.Load(), upTo), staged, s.scrub)
	if broken != nil {
		return sdk.FlushResult{}, i.sup.disbelieve(broken)
	}
	raise(&s.staged, result.CommittedThrough)
	i.Resume(result.CommittedThrough)
	return result, nil
}

// flushFromProto reads an answer to a flush. One that says neither that it
// flushed nor how far it got, as an empty one does, is no success.
func flushFromProto(out *sinkv1.FlushResponse, highest, staged uint64, scrub *scrubber) (sdk.FlushResult, *breach) {
	r := sdk.FlushResult{CommittedThrough: out.GetCommittedThrough()}
	switch {
	case r.CommittedThrough > highest:
		return r, &breach{"watermark_ahead", fmt.Sprintf("flushed through %d, sent through %d", r.CommittedThrough, highest)}
	case r.CommittedThrough < staged:
		return r, &breach{"watermark_backwards", fmt.Sprintf("flushed through %d after %d", r.CommittedThrough, staged)}
	}
	for _, f := range out.GetFailures() {
		err := errorFromProto(f.GetError(), scrub)
		if err == nil {
			err = &sdk.Error{Class: sdk.ClassTransient, Code: "unspecified", Message: "failed without a reason"}
		}
		r.Failures = append(r.Failures, sdk.FlushFailure{Seq: f.GetSeq(), Err: err})
	}
	return r, nil
}

// learn keeps what an answer says about the watermark and about the session.
func (i *SinkInstance) learn(s *session, b *sdk.Batch, r sdk.WriteResult) {
	switch r.Outcome {
	case sdk.Rejected:
		i.sup.heed(s, r.Err)
	case sdk.Staged:
		raise(&s.staged, r.CommittedThrough)
		i.Resume(r.CommittedThrough)
	case sdk.Committed:
		i.mu.Lock()
		// Batches may be answered out of order: only the next one moves it.
		if b.FirstSeq <= i.committed+1 {
			i.committed = max(i.committed, b.LastSeq)
		}
		i.mu.Unlock()
	default: // Partial: what failed is not safe, and the rest implies nothing
	}
}
