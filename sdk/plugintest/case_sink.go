package plugintest

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

const (
	committed = sinkv1.WriteBatchResponse_OUTCOME_COMMITTED
	staged    = sinkv1.WriteBatchResponse_OUTCOME_STAGED
	partial   = sinkv1.WriteBatchResponse_OUTCOME_PARTIAL
	rejected  = sinkv1.WriteBatchResponse_OUTCOME_REJECTED
)

// sinkCases are the promises of a sink.
var sinkCases = group{"sink", []oneCase{
	{"is not open before it was opened", func(c *check) {
		c.accepted(instanceID, c.target.Config)
		out := c.write(c.process(), c.batch(c.some(1)))
		if out.GetOutcome() != rejected && out.GetOutcome() != 0 {
			c.fail("it answers %s to a batch before Open", out.GetOutcome())
		}
	}},
	{"opens", func(c *check) { c.openSink(c.process(), 0) }},
	{"declares numbers that can be meant", sinkNumbersCase},
	{"is ready", func(c *check) {
		c.openSink(c.process(), 0)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			h := c.health()[instanceID]
			if h.GetStatus() == pluginv1.InstanceHealth_STATUS_READY {
				return
			}
			if time.Now().After(deadline) {
				c.fail("ten seconds after Open its health is %s", h.GetStatus())
			}
		}
	}},
	{"stores one event", func(c *check) { c.stores(1) }},
	{"stores 1,000 events", func(c *check) { c.stores(1000) }},
	{"stores a large number of events", func(c *check) { c.stores(c.large()) }},
	{"takes an empty batch", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		b := c.batch(nil)
		c.good(p, b, c.write(p, b))
	}},
	{"keeps odd JSON as it is", oddCase},
	{"survives an event of 1 MB", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		big := event("large", `{"text":"`+strings.Repeat("x", 1<<20-300)+`"}`)
		b := c.batch(append(c.some(2), big))
		out := c.write(p, b)
		if out.GetOutcome() == partial {
			for _, f := range out.GetFailures() {
				if f.GetIndex() != 2 {
					c.fail("the failure is of record %d, and the large one is 2", f.GetIndex())
				}
			}
			b.events = b.events[:2]
		} else {
			c.good(p, b, out)
		}
		c.arrived(p, b, true)
	}},
	{"takes the same batch again", func(c *check) {
		p := c.process()
		props := c.openSink(p, 0)
		b := c.batch(c.some(100))
		c.good(p, b, c.write(p, b))
		b.request.Attempt = 2
		c.good(p, b, c.write(p, b))
		c.arrived(p, b, recognizes(props))
	}},
	{"answers for its health while it writes", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		var writing sync.WaitGroup
		defer writing.Wait()
		b := c.batch(c.some(c.large()))
		done := make(chan struct{})
		writing.Go(func() {
			defer close(done)
			ctx, cancel := c.call(time.Minute)
			defer cancel()
			_, _ = p.Sink().WriteBatch(ctx, b.request) // other cases check the answer
		})
		fastest := time.Hour
		for {
			begin := time.Now()
			c.health()
			fastest = min(fastest, time.Since(begin))
			select {
			case <-done:
				if fastest > time.Second {
					c.fail("while a batch was written Health took %s at best", fastest)
				}
				return
			default:
			}
		}
	}},
	{"works on after a deadline", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		late := c.batch(c.some(1000))
		ctx, cancel := c.call(time.Millisecond)
		_, _ = p.Sink().WriteBatch(ctx, late.request)
		cancel()
		c.again(p, late)
	}},
	{"works on after it was held up", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		late := c.batch(c.some(100))
		c.no(p.Signal(syscall.SIGSTOP), "stop the process")
		ctx, cancel := c.call(200 * time.Millisecond)
		_, _ = p.Sink().WriteBatch(ctx, late.request)
		cancel()
		c.no(p.Signal(syscall.SIGCONT), "have the process go on")
		c.again(p, late)
	}},
	{"takes as many batches at once as it says", concurrencyCase},
	{"names the records that it cannot store", poisonCase},
	{"makes safe what it holds when it is told to", stagedCase},
	{"does not mix up another instance", func(c *check) {
		p := c.process()
		c.openSink(p, 0)
		b := c.batch(c.some(1))
		b.request.InstanceId = "never-there"
		if out := c.write(p, b); out.GetOutcome() != rejected && out.GetOutcome() != 0 {
			c.fail("it answers %s for an instance that is not there", out.GetOutcome())
		}
	}},
	{"loses nothing when it is killed in the middle", killCase},
	{"finishes its work before it ends", func(c *check) {
		c.retire()
		p := c.another()
		c.openSink(p, c.safe)
		b := c.batch(c.some(500))
		c.good(p, b, c.write(p, b))
		c.flush(p, sinkv1.FlushRequest_REASON_SHUTDOWN, b.last())
		ctx, cancel := c.call(30 * time.Second)
		defer cancel()
		if _, err := p.Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: instanceID}); err != nil {
			c.fail("Close: %v", err)
		}
		c.there(b, false)
	}},
	{"takes a batch as large as it says", largestCase},
}}

// recognizes reports whether a sink recognizes a second delivery. A value that the kit
// does not know is the same as none.
func recognizes(p *sinkv1.SinkProperties) bool {
	return p.GetDedup() == sinkv1.SinkProperties_DEDUP_BY_BATCH_ID || p.GetDedup() == sinkv1.SinkProperties_DEDUP_BY_EVENT_ID
}

// large is how many events the large batches have.
func (c *check) large() int {
	if c.target.Events > 0 {
		return c.target.Events
	}
	return 10_000
}

// openSink configures and opens the instance in a process, once.
func (c *check) openSink(p *candidate.Process, through uint64) *sinkv1.SinkProperties {
	if props := c.opened[p]; props != nil {
		return props
	}
	if out := c.configureIn(p, instanceID, 1, c.target.Config); !out.GetAccepted() {
		c.fail("Configure refuses the config: %s %s", diagnostics(out.GetDiagnostics()), out.GetError().GetMessage())
	}
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	out, err := p.Sink().Open(ctx, &sinkv1.OpenRequest{InstanceId: instanceID, CommittedThrough: through})
	c.no(err, "Open")
	if !out.GetOpened() || out.GetProperties() == nil {
		c.fail("it does not open: %s", failed(out.GetError()))
	}
	if c.opened == nil {
		c.opened = map[*candidate.Process]*sinkv1.SinkProperties{}
	}
	c.opened[p] = out.GetProperties()
	return out.GetProperties()
}

// stores writes n events, in as many batches as the sink wants, and looks.
func (c *check) stores(n int) {
	p := c.process()
	props := c.openSink(p, 0)
	most := n
	if m := int(props.GetMaxEvents()); m > 0 {
		most = min(most, m)
	}
	var all batch
	for left := n; left > 0; left -= most {
		b := c.batch(c.some(min(left, most)))
		c.good(p, b, c.write(p, b))
		all.events, all.request = append(all.events, b.events...), b.request
	}
	c.arrived(p, &all, true)
}

func (c *check) write(p *candidate.Process, b *batch) *sinkv1.WriteBatchResponse {
	ctx, cancel := c.call(time.Minute)
	defer cancel()
	out, err := p.Sink().WriteBatch(ctx, b.request)
	c.no(err, "WriteBatch")
	return out
}

// again sends a batch with an unknown outcome until it is accepted.
func (c *check) again(p *candidate.Process, b *batch) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		b.request.Attempt++
		out := c.write(p, b)
		if out.GetOutcome() == rejected && out.GetError().GetClass() == pluginv1.Error_CLASS_TRANSIENT && time.Now().Before(deadline) {
			continue // it needs a moment
		}
		c.good(p, b, out)
		break
	}
	c.arrived(p, b, false)
}

// good fails unless every event of the batch is accepted, in an answer that
// makes sense.
func (c *check) good(p *candidate.Process, b *batch, out *sinkv1.WriteBatchResponse) {
	through := out.GetCommittedThrough()
	switch out.GetOutcome() {
	case committed:
		if through < b.last() {
			c.fail("it has committed a batch through %d and says %d", b.last(), through)
		}
	case staged:
	case partial:
		f := out.GetFailures()
		if len(f) == 0 {
			c.fail("a partial outcome without failures")
		}
		c.fail("it refuses record %d: %s", f[0].GetIndex(), failed(f[0].GetError()))
	case rejected:
		c.fail("it refuses the batch: %s", failed(out.GetError()))
	default:
		c.fail("it answers without an outcome, which counts as nothing stored")
	}
	if through > c.number {
		c.fail("it says that %d is safe and was sent no more than %d", through, c.number)
	}
	if through < c.marks[p] {
		c.fail("what is safe goes backwards, from %d to %d", c.marks[p], through)
	}
	c.mark(p, through)
}

func (c *check) mark(p *candidate.Process, through uint64) {
	if c.marks == nil {
		c.marks = map[*candidate.Process]uint64{}
	}
	c.marks[p] = max(c.marks[p], through)
	c.safe = max(c.safe, through)
}

// flush makes everything up to there safe, when the sink stages.
func (c *check) flush(p *candidate.Process, why sinkv1.FlushRequest_Reason, upTo uint64) {
	if c.openSink(p, 0).GetCommit() != sinkv1.SinkProperties_COMMIT_ON_FLUSH {
		return
	}
	ctx, cancel := c.call(time.Minute)
	defer cancel()
	out, err := p.Sink().Flush(ctx, &sinkv1.FlushRequest{InstanceId: instanceID, Reason: why, UpToSeq: upTo})
	c.no(err, "Flush")
	if out.GetError() != nil {
		c.fail("Flush fails: %s", failed(out.GetError()))
	}
	if !out.GetFlushed() || out.GetCommittedThrough() < upTo {
		c.fail("after Flush to %d only %d is safe", upTo, out.GetCommittedThrough())
	}
	if out.GetCommittedThrough() > c.number {
		c.fail("it says that %d is safe and was sent no more than %d", out.GetCommittedThrough(), c.number)
	}
	c.mark(p, out.GetCommittedThrough())
}

// arrived makes the batch safe and looks whether it is there.
func (c *check) arrived(p *candidate.Process, b *batch, once bool) {
	c.flush(p, sinkv1.FlushRequest_REASON_TIMER, b.last())
	c.there(b, once)
}

// there looks whether the events are where they should be, each once if it must
// be so. Without a Stored function it verifies nothing.
func (c *check) there(b *batch, once bool) map[string]sdk.Event {
	if c.target.Received == nil {
		return nil
	}
	got, err := c.target.Received()
	c.no(err, "look at the destination")
	times, found := map[string]int{}, map[string]sdk.Event{}
	for _, e := range got {
		times[e.UUID]++
		found[e.UUID] = e
	}
	missing, doubled := 0, 0
	for i := range b.events {
		switch n := times[b.events[i].UUID]; {
		case n == 0:
			missing++
		case n > 1:
			doubled++
		}
	}
	if missing > 0 {
		c.fail("it says that %d events are safe, and %d of them are not there", len(b.events), missing)
	}
	if once && doubled > 0 {
		c.fail("%d of %d events are there more than once", doubled, len(b.events))
	}
	return found
}
