package host

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// SinkPartition is a sink for the records of one partition of a shared log, which have
// numbers of their own. In the process of the sink it is a further instance with the same
// config, INSTANCE@PARTITION; it is opened when it is called first, and again after each
// restart or upgrade. Its methods are safe for concurrent use.
//
// A plugin that is exclusive, or that serves one instance only, has no further instances:
// all partitions are written in the session of the sink, one batch after the other, with
// numbers that the sink gives them.
type SinkPartition struct {
	*SinkInstance
	whole *SinkInstance

	opening sync.Mutex                   // held while the part is opened
	session atomic.Pointer[conn.Session] // in which it is open; nil if it is not
}

// Partition returns the sink for a partition. Close closes it.
func (i *SinkInstance) Partition(number int) *SinkPartition {
	one := newSinkInstance(i.instance)
	one.id = i.name + "@" + strconv.Itoa(number)
	one.progress = func(s *conn.Session) *conn.Progress { return s.PartProgress(one.id) }
	p := &SinkPartition{SinkInstance: one, whole: i}
	one.lost = p.leave
	return p
}

// openPause bounds the pauses between two attempts to open a partition.
var openPause = retry.Backoff{Min: 50 * time.Millisecond, Max: 10 * time.Second}

// Ready opens the partition. It blocks until it is open, or ctx ends.
func (p *SinkPartition) Ready(ctx context.Context) error {
	backoff := openPause
	for {
		if err := p.gate.Wait(ctx); err != nil {
			return err
		}
		if s := p.gate.Enter(); s != nil {
			err := p.openIn(ctx, s)
			s.InFlight.Done()
			if err == nil {
				return nil
			}
			p.recordFailure(ctx, err)
		}
		if !backoff.Sleep(ctx) {
			return ctx.Err()
		}
	}
}

// openIn opens the partition in a session, unless it is open there.
func (p *SinkPartition) openIn(ctx context.Context, s *conn.Session) *sdk.Error {
	p.opening.Lock()
	defer p.opening.Unlock()
	last := p.session.Load()
	if last == s {
		return nil
	}
	if last != nil {
		p.Resume(p.progress(last).Committed.Load())
	}
	if !s.HasParts() {
		return p.openWhole(s)
	}
	out, err := s.ConfigurePart(ctx, p.id)
	switch {
	case err != nil:
		return p.anyCallError(ctx, s, err)
	case !out.GetAccepted():
		return sdk.Errorf(sdk.ClassTransient, "configure", "the config was accepted for the sink and not for %s", p.id)
	}
	opened, refused, err := p.open(ctx, s)
	switch {
	case err != nil:
		return p.anyCallError(ctx, s, err)
	case opened == nil && refused == nil:
		return sdk.Errorf(sdk.ClassTransient, "contract_breach", "open was neither done nor refused")
	case opened == nil:
		p.handleInstanceError(s, refused)
		return refused
	}
	opened.commit()
	p.session.Store(s)
	return nil
}

// openWhole makes the partition use the session of the sink. Records that are staged
// there could not be told from those of other partitions.
func (p *SinkPartition) openWhole(s *conn.Session) *sdk.Error {
	properties := p.whole.Properties()
	if properties.Commit == sdk.CommitOnFlush {
		return sdk.Errorf(sdk.ClassConfig, "one_session", "a sink that commits on flush and has one session cannot take a log in partitions")
	}
	p.mu.Lock()
	p.properties = properties
	p.sessions++
	p.mu.Unlock()
	p.session.Store(s)
	return nil
}

// leave notes that the partition is not open in a session any more.
func (p *SinkPartition) leave(s *conn.Session) { p.session.CompareAndSwap(s, nil) }

// enterOpen returns the current session if the partition is open in it. The caller ends it
// with InFlight.Done.
func (p *SinkPartition) enterOpen() *conn.Session {
	s := p.gate.Enter()
	if s != nil && s != p.session.Load() {
		s.InFlight.Done()
		return nil
	}
	return s
}

// Write is that of SinkInstance.
func (p *SinkPartition) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s := p.enterOpen()
	if s == nil {
		return sdk.WriteResult{}, errNotRunning()
	}
	defer s.InFlight.Done()
	if s.HasParts() {
		return p.write(ctx, s, b)
	}
	return p.whole.writeNext(ctx, s, b)
}

// writeNext writes a batch under the next numbers of the session.
func (i *SinkInstance) writeNext(ctx context.Context, s *conn.Session, b *sdk.Batch) (sdk.WriteResult, error) {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return sdk.WriteResult{}, wire.UnknownOutcome("cancelled", ctx.Err().Error())
	}
	next := *b
	next.FirstSeq = max(i.CommittedThrough(), i.progress(s).Sent.Load()) + 1
	next.LastSeq = next.FirstSeq + b.LastSeq - b.FirstSeq
	return i.write(ctx, s, &next)
}

// Flush is that of SinkInstance.
func (p *SinkPartition) Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s := p.enterOpen()
	if s == nil {
		return sdk.FlushResult{}, errNotRunning()
	}
	defer s.InFlight.Done()
	if !s.HasParts() {
		return sdk.FlushResult{CommittedThrough: upTo}, nil
	}
	return p.flush(ctx, s, reason, upTo)
}

// Close closes the partition, when no call is running.
func (p *SinkPartition) Close(ctx context.Context) {
	s := p.enterOpen()
	if s == nil {
		return
	}
	defer s.InFlight.Done()
	p.leave(s)
	if s.HasParts() {
		s.ClosePart(ctx, p.id)
	}
}
