package plugintest

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// The most that a plugin can mean. The server has lower limits of its own, so a larger
// number is a mistake, such as -1 in an unsigned field.
const (
	mostInFlight = 10_000
	mostBytes    = 1 << 40
	mostEvents   = 1 << 30
	longest      = 30 * 24 * time.Hour
)

// sane fails for a number that cannot be meant.
func (c *check) sane(name string, n, most uint64) {
	if n > most {
		c.fail("%s is %d, which cannot be meant", name, n)
	}
}

func (c *check) saneDuration(name string, d *durationpb.Duration) {
	if v := d.AsDuration(); v < 0 || v > longest {
		c.fail("%s is %s, which cannot be meant", name, v)
	}
}

// sinkNumbersCase looks at the properties of a sink.
func sinkNumbersCase(c *check) {
	p := c.openSink(c.process(), 0)
	c.sane("max_in_flight", uint64(p.GetMaxInFlight()), mostInFlight)
	c.sane("max_events", uint64(p.GetMaxEvents()), mostEvents)
	c.sane("max_bytes", p.GetMaxBytes(), mostBytes)
	c.sane("max_staged_events", p.GetMaxStagedEvents(), mostBytes)
	c.sane("max_staged_bytes", p.GetMaxStagedBytes(), mostBytes)
	c.saneDuration("linger", p.GetLinger())
	c.saneDuration("max_staged_age", p.GetMaxStagedAge())
}

// notifierNumbersCase looks at the properties of a notifier.
func notifierNumbersCase(c *check) {
	p := c.openNotifier()
	c.sane("max_in_flight", uint64(p.GetMaxInFlight()), mostInFlight)
	c.sane("max_items", uint64(p.GetMaxItems()), mostEvents)
	c.sane("burst", uint64(p.GetBurst()), mostEvents)
	c.saneDuration("dedup_window", p.GetDedupWindow())
	if p.GetPerSecond() < 0 {
		c.fail("per_second is %v, which cannot be meant", p.GetPerSecond())
	}
}

// matcherNumbersCase looks at the properties of a matcher and of its operators.
func matcherNumbersCase(c *check) {
	for _, op := range c.operators() {
		c.saneDuration("cache_ttl of "+op.GetId(), op.GetCacheTtl())
		c.sane("cost_ns of "+op.GetId(), op.GetCostNs(), uint64(time.Hour))
	}
	c.sane("max_in_flight", uint64(c.matches.GetMaxInFlight()), mostInFlight)
	c.sane("max_pairs", uint64(c.matches.GetMaxPairs()), mostEvents)
}

// sameStartCase compares the description of a second process with that of the first.
func sameStartCase(c *check) {
	first := c.schemaText(c.process())
	p := c.another()
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	info, err := p.Plugin().Info(ctx, &pluginv1.InfoRequest{HostName: "plugintest", ProtocolMinor: sdk.ProtocolMinor})
	c.no(err, "Info")
	if !proto.Equal(info, c.info) {
		c.fail("a second process says that it is %s, and the first one %s", observe.Clip(info.String()), observe.Clip(c.info.String()))
	}
	if second := c.schemaText(p); second != first {
		c.fail("a second process has another schema: %s, and the first one %s", observe.Clip(second), observe.Clip(first))
	}
}

func (c *check) schemaText(p *candidate.Process) string {
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	out, err := p.Plugin().ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: c.kind})
	c.no(err, "ConfigSchema")
	return string(out.GetJsonSchema())
}

// defaultMessage is what a plugin takes that does not state max_message_bytes.
const defaultMessage = 4 << 20

// largestCase sends a batch as large as the server may send: three quarters of the
// largest message, within the limits that the sink has for a batch.
func largestCase(c *check) {
	p := c.process()
	props := c.openSink(p, c.safe)
	size := c.info.GetMaxMessageBytes()
	if size == 0 {
		size = defaultMessage
	}
	size = min(size, sdk.MaxMessageBytes) / 4 * 3
	if most := props.GetMaxBytes(); most > 0 {
		size = min(size, most)
	}
	b := c.batch(c.filled(int(size), int(props.GetMaxEvents())))
	out := c.write(p, b)
	if out.GetOutcome() == sinkv1.WriteBatchResponse_OUTCOME_PARTIAL {
		for _, f := range out.GetFailures() {
			if f.GetError().GetClass() != pluginv1.Error_CLASS_PERMANENT {
				c.fail("it refuses record %d of a batch of %d bytes: %s", f.GetIndex(), size, failed(f.GetError()))
			}
		}
		return
	}
	c.good(p, b, out)
	c.flush(p, sinkv1.FlushRequest_REASON_TIMER, b.last())
}
