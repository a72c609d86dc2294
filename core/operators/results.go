package operators

import (
	"math"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// question is a pair as the cache knows it: half of the checksum of the program
// is as good as the program, and quicker to look up.
type question struct {
	program [2]uint64
	kind    uint64
	value   string
}

func questionOf(p match.Program, v *match.Value) question {
	q := question{kind: uint64(v.Kind()), value: v.Content()}
	if len(p) >= 16 {
		q.program[0], q.program[1] = word(p), word(p[8:])
	}
	return q
}

func word(p match.Program) uint64 {
	_ = p[7]
	return uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
		uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
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
	q, at := questionOf(p, v), now.UnixNano()
	slot := o.recent.slot(&q)
	if k := slot.Load(); k != nil && k.question == q && k.holds(at) {
		o.meter.hit()
		return k.result, true
	}
	a, ok := o.results.GetIfPresent(q)
	if !ok || !a.holds(at) {
		return match.Unknown, false
	}
	o.recent.offer(slot, q, a)
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
	q := questionOf(pair.Program, &pair.Value)
	q.value = strings.Clone(q.value)
	o.results.Set(q, a)
}

// entryBytes is what an entry takes besides its value.
const entryBytes = 256

func newResults(size int) (*otter.Cache[question, answer], error) {
	return otter.New(&otter.Options[question, answer]{
		MaximumWeight: uint64(max(size, 1)),
		Weigher:       func(q question, _ answer) uint32 { return uint32(min(len(q.value)+entryBytes, math.MaxInt32)) },
	})
}
