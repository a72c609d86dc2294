package decide

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Matchers answers filters with operators of plugins, all filters of a
// request in one call.
type Matchers interface {
	// Known returns the result that plugins gave for a pair before, if it is
	// still valid at the given time. It does not block.
	Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool)
	// MatchPairs writes one result per pair into results, which comes filled
	// with Unknown. Results that are missing shortly before the deadline of
	// ctx stay Unknown: it returns in time, and keeps no reference to pairs.
	MatchPairs(ctx context.Context, now time.Time, pairs []match.Pair, results []match.Result)
}
