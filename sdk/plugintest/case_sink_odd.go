package plugintest

import (
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/exact"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// oddCase sends valid but unusual events and checks that they are stored unchanged.
func oddCase(c *check) {
	p := c.process()
	c.openSink(p, 0)
	b := c.batch(odd())
	out := c.write(p, b)
	if out.GetOutcome() == partial {
		// A destination may be unable to store one of them, such as a NUL.
		kept := b.events[:0:0]
		bad := map[uint32]bool{}
		for _, f := range out.GetFailures() {
			if f.GetError().GetClass() != pluginv1.Error_CLASS_PERMANENT {
				c.fail("record %d fails with %s: one that can never be stored is permanent", f.GetIndex(), failed(f.GetError()))
			}
			bad[f.GetIndex()] = true
		}
		for i, e := range b.events {
			if !bad[uint32(i)] {
				kept = append(kept, e)
			}
		}
		b.events = kept
	} else {
		c.good(p, b, out)
	}
	c.flush(p, sinkv1.FlushRequest_REASON_TIMER, b.last())
	found := c.there(b, true)
	if found == nil {
		c.skip("there is nobody who looks at the destination")
	}
	for _, e := range b.events {
		if why := exact.Difference(e.Properties, found[e.UUID].Properties); why != "" {
			c.fail("of %s came %s: %s", observe.Clip(string(e.Properties)), observe.Clip(string(found[e.UUID].Properties)), why)
		}
	}
}
