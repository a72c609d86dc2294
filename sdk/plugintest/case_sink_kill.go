package plugintest

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// killCase writes, kills the process while it does, and sends again what was
// not known to be safe, as the host does.
func killCase(c *check) {
	var all batch
	var sent []*batch
	c.retire()
	p := c.another()
	props := c.openSink(p, c.safe)
	size := 200
	if m := int(props.GetMaxEvents()); m > 0 {
		size = min(size, m)
	}
	for round := range 3 {
		for i := range 4 {
			b := c.batch(c.some(size))
			sent, all.events = append(sent, b), append(all.events, b.events...)
			if i == 3 { // on its way when the process is gone
				ctx, cancel := c.call(time.Minute)
				var writing sync.WaitGroup
				writing.Go(func() { _, _ = p.Sink().WriteBatch(ctx, b.request) })
				time.Sleep(time.Duration(round) * 2 * time.Millisecond)
				c.crash(p)
				writing.Wait()
				cancel()
				break
			}
			c.good(p, b, c.write(p, b))
		}
		safe := c.marks[p]
		p = c.another()
		c.openSink(p, safe)
		for _, b := range sent {
			if b.last() > safe {
				b.request.Attempt++
				c.good(p, b, c.write(p, b))
			}
		}
		c.flush(p, sinkv1.FlushRequest_REASON_TIMER, c.number)
		sent = nil
	}
	if c.target.Received == nil {
		c.skip("there is nobody who looks at the destination")
	}
	c.there(&all, props.GetDedup() == sinkv1.SinkProperties_DEDUP_BY_EVENT_ID)
}
