package operators

import (
	"math"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// question is a pair as the cache knows it.
type question struct {
	program match.Program
	kind    match.Kind
	value   string
}

// answer is what a plugin said, and for how long that is true.
type answer struct {
	result match.Result // Unknown: the plugin cannot judge the value
	until  int64        // unix nanoseconds
	plugin *plugin
	epoch  uint64
	data   string // the data that it depends on, or ""
}

// How long answers are true whose plugin does not say, and at most.
const (
	usualTTL = time.Second
	maxTTL   = 5 * time.Minute
	forever  = math.MaxInt64
)

// Known returns what a plugin has said about a pair before, if that is still
// true at the given time. Unknown with true means that the plugin cannot judge
// the value. It does not block.
func (o *Operators) Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool) {
	a, ok := o.results.GetIfPresent(question{p, v.Kind(), v.Content()})
	if !ok || !a.holds(now.UnixNano()) {
		return match.Unknown, false
	}
	o.meter.hit()
	return a.result, true
}

func (a *answer) holds(now int64) bool {
	return now < a.until && a.epoch == a.plugin.epoch.Load() && (a.data == "" || a.data == a.plugin.asked().DataVersion())
}

// lasting says until when what a plugin says of an operator is true; 0 is not at
// all.
func lasting(op *sdk.Operator, said time.Duration, now time.Time) int64 {
	ttl := op.CacheTTL
	if said > 0 && (ttl == 0 || said < ttl) {
		ttl = said
	}
	ttl = min(ttl, maxTTL)
	switch op.Purity {
	case sdk.Pure:
		if ttl == 0 {
			return forever
		}
	case sdk.DataDependent:
		if ttl == 0 { // somebody has to ask now and then to learn of newer data
			ttl = maxTTL
		}
	case sdk.TimeDependent:
		if ttl == 0 {
			ttl = usualTTL
		}
		// All nodes see the same moment, whenever each of them asked.
		return now.Truncate(ttl).Add(ttl).UnixNano()
	default:
		return 0
	}
	return now.Add(ttl).UnixNano()
}

// keep remembers what was said about a pair. The key is a copy: the pair's own
// text belongs to a request.
func (o *Operators) keep(pair *match.Pair, a answer) {
	if a.until == 0 || o.cfg.CacheBytes == 0 {
		return
	}
	o.results.Set(question{pair.Program, pair.Value.Kind(), strings.Clone(pair.Value.Content())}, a)
}

// entryBytes is what an entry takes besides its value. The program is shared
// with the filter it is of.
const entryBytes = 256

func newResults(size int) (*otter.Cache[question, answer], error) {
	return otter.New(&otter.Options[question, answer]{
		MaximumWeight: uint64(max(size, 1)),
		Weigher:       func(q question, _ answer) uint32 { return uint32(min(len(q.value)+entryBytes, math.MaxInt32)) },
	})
}
