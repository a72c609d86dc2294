package plugintest

import (
	"time"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// changeable returns an operator whose results may change, or nil.
func (c *check) changeable() *matchv1.Operator {
	for _, op := range c.operators() {
		// A value that the kit does not know is the same as VOLATILE.
		if p := op.GetPurity(); p <= matchv1.Operator_PURITY_VOLATILE || p > matchv1.Operator_PURITY_DATA {
			return op
		}
	}
	return nil
}

// sameCase repeats requests, also with another process.
func sameCase(c *check) {
	if op := c.changeable(); op != nil {
		c.skip("%s says that it may change its mind", op.GetId())
	}
	programs, values, pp, pv, now := c.square()
	first := c.match(programs, values, pp, pv, now)
	asked := []*candidate.Process{c.process(), c.process()}
	if !c.info.GetExclusive() {
		p := c.another()
		c.openMatcher(p)
		asked = append(asked, p)
	}
	for _, p := range asked {
		for i, v := range c.matchIn(p, programs, values, pp, pv, now) {
			if v != first[i] {
				c.fail("%s changes its mind about %s", programs[pp[i]].GetOperatorId(), values[pv[i]])
			}
		}
	}
}

// shortCase requests more than fits in the deadline: answered pairs are
// true, the rest is unknown, and the process works on.
func shortCase(c *check) {
	programs, values, pp, pv, at := c.square()
	truth := c.match(programs, values, pp, pv, at)
	const many = 100_000
	manyPrograms, manyValues := make([]uint32, many), make([]uint32, many)
	for i := range many {
		manyPrograms[i], manyValues[i] = pp[i%len(pp)], pv[i%len(pv)]
	}
	for _, limit := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 10 * time.Second} {
		ctx, cancel := c.call(limit)
		out, err := c.process().Matcher().MatchBatch(ctx, &matchv1.MatchBatchRequest{
			InstanceId: instanceID, Programs: programs, Values: values, PairProgram: manyPrograms, PairValue: manyValues, NowUs: at,
		})
		cancel()
		if err != nil || out.GetError() != nil {
			continue // all are unknown
		}
		if len(out.GetVerdicts()) != many {
			c.fail("%d verdicts for %d pairs", len(out.GetVerdicts()), many)
		}
		for i, v := range out.GetVerdicts() {
			if v != 0 && v != truth[i%len(truth)] && c.changeable() == nil {
				c.fail("%s with %s is %s in a hurry and %s at leisure", programs[manyPrograms[i]].GetOperatorId(), values[manyValues[i]],
					matchv1.Verdict(v), matchv1.Verdict(truth[i%len(truth)]))
			}
		}
	}
	c.match(programs[:1], values[:1], []uint32{0}, []uint32{0}, at)
}
