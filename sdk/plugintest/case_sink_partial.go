package plugintest

import (
	"slices"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// poisonCase hides what the destination cannot hold at the beginning, in the
// middle and at the end of a batch. The sink may name the records, or refuse the
// batch for good, which the host then halves; the others must be stored.
func poisonCase(c *check) {
	if len(c.target.Refused) == 0 {
		c.skip("nobody said what the destination cannot hold")
	}
	p := c.process()
	c.openSink(p, 0)
	for _, at := range [][]int{{0}, {49}, {99}, {0, 1, 50, 99}} {
		events := c.some(100)
		for _, i := range at {
			events[i] = event("poison", string(c.target.Refused))
		}
		b := c.batch(events)
		out := c.write(p, b)
		var named []int
		switch out.GetOutcome() {
		case partial:
			for _, f := range out.GetFailures() {
				named = append(named, int(f.GetIndex()))
				c.forGood(f.GetError())
			}
			c.mark(p, out.GetCommittedThrough())
		case staged:
			named = c.flushFailures(p, b)
		case rejected:
			c.forGood(out.GetError())
			c.halve(p, b, at)
			continue
		default:
			c.fail("it answers %s to a batch with what the destination cannot hold", outcomeName(out.GetOutcome()))
		}
		slices.Sort(named)
		if !slices.Equal(named, at) {
			c.fail("the records %v cannot be stored, and it names %v", at, named)
		}
		c.flush(p, sinkv1.FlushRequest_REASON_TIMER, b.last())
		c.there(without(b, at), false)
	}
}

// forGood fails unless the error is permanent.
func (c *check) forGood(e *pluginv1.Error) {
	if class := e.GetClass(); class != pluginv1.Error_CLASS_PERMANENT && class != pluginv1.Error_CLASS_UNSUPPORTED {
		c.fail("what can never be stored fails with %s: it would be sent for ever", failed(e))
	}
}

// flushFailures flushes and returns the places of the records that were given up.
func (c *check) flushFailures(p *candidate.Process, b *batch) (named []int) {
	ctx, cancel := c.call(time.Minute)
	defer cancel()
	out, err := p.Sink().Flush(ctx, &sinkv1.FlushRequest{InstanceId: instanceID, Reason: sinkv1.FlushRequest_REASON_TIMER, UpToSeq: b.last()})
	c.no(err, "Flush")
	for _, f := range out.GetFailures() {
		named = append(named, int(f.GetSeq())-int(b.request.GetFirstSeq()))
		c.forGood(f.GetError())
	}
	return named
}

// halve bisects a refused batch until the failing records are alone.
func (c *check) halve(p *candidate.Process, b *batch, at []int) {
	rest := c.batch(without(b, at).events)
	c.good(p, rest, c.write(p, rest))
	for _, i := range at {
		alone := c.batch(b.events[i : i+1])
		out := c.write(p, alone)
		if out.GetOutcome() != rejected && out.GetOutcome() != partial {
			c.fail("it refuses a batch for record %d, and takes that record alone (%s)", i, outcomeName(out.GetOutcome()))
		}
	}
	c.arrived(p, rest, false)
}

// without is the batch without the records at those places.
func without(b *batch, at []int) *batch {
	rest := &batch{request: b.request}
	for i, e := range b.events {
		if !slices.Contains(at, i) {
			rest.events = append(rest.events, e)
		}
	}
	return rest
}
