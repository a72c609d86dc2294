package plugintest

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// concurrencyCase sends as many concurrent batches as the sink declares.
func concurrencyCase(c *check) {
	p := c.process()
	props := c.openSink(p, 0)
	n := min(int(props.GetMaxInFlight()), 8)
	if n < 2 || props.GetOrdering() == sinkv1.SinkProperties_ORDERING_TOTAL || props.GetCommit() == sinkv1.SinkProperties_COMMIT_ON_FLUSH {
		c.skip("it is sent one batch at a time")
	}
	batches, answers := make([]*batch, n), make([]*sinkv1.WriteBatchResponse, n)
	errs := make([]error, n)
	for i := range batches {
		batches[i] = c.batch(c.some(200))
	}
	var writing sync.WaitGroup
	for i, b := range batches {
		writing.Go(func() {
			ctx, cancel := c.call(time.Minute)
			defer cancel()
			answers[i], errs[i] = p.Sink().WriteBatch(ctx, b.request)
		})
	}
	writing.Wait()
	for i, b := range batches {
		c.no(errs[i], "WriteBatch beside others")
		if answers[i].GetOutcome() != committed {
			c.fail("of %d batches at once it answers one with %s: %s", n, outcomeName(answers[i].GetOutcome()), failed(answers[i].GetError()))
		}
		if through := answers[i].GetCommittedThrough(); through < b.last() || through > c.number {
			c.fail("it has committed a batch through %d and says %d, of %d that were sent", b.last(), through, c.number)
		}
		c.mark(p, answers[i].GetCommittedThrough())
		c.there(b, true)
	}
}

// stagedCase flushes in two steps: the requested records are there, and a
// second one does no harm.
func stagedCase(c *check) {
	p := c.process()
	if c.openSink(p, 0).GetCommit() != sinkv1.SinkProperties_COMMIT_ON_FLUSH {
		c.skip("it holds nothing back")
	}
	var batches []*batch
	for range 3 {
		b := c.batch(c.some(50))
		c.good(p, b, c.write(p, b))
		batches = append(batches, b)
	}
	c.flush(p, sinkv1.FlushRequest_REASON_TIMER, batches[0].last())
	c.there(batches[0], true)
	for range 2 {
		c.flush(p, sinkv1.FlushRequest_REASON_MANUAL, batches[2].last())
	}
	for _, b := range batches {
		c.there(b, true)
	}
}
