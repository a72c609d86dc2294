package operators

import (
	"math"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// cacheKey identifies a pair in the cache. Half of the program's checksum is unique
// enough and quicker to look up.
type cacheKey struct {
	program [2]uint64
	kind    uint64
	value   string
}

func cacheKeyOf(p match.Program, v *match.Value) cacheKey {
	q := cacheKey{kind: uint64(v.Kind()), value: v.Content()}
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

// cachedResult is the result of a plugin and its validity.
type cachedResult struct {
	result match.Result // Unknown: the plugin cannot evaluate the value
	until  int64        // unix nanoseconds
	plugin *plugin
	epoch  uint64
	data   string // the version of the data that it depends on, or ""
}

// The validity of results whose plugin reports none, and the longest validity.
const (
	defaultTTL = time.Second
	maxTTL     = 5 * time.Minute
	forever    = math.MaxInt64
)

// Known returns the cached result of a pair that is valid at the given time. Unknown
// with true means that the plugin cannot evaluate the value. It does not block.
func (o *Operators) Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool) {
	q, at := cacheKeyOf(p, v), now.UnixNano()
	slot := o.recent.slot(&q)
	if k := slot.Load(); k != nil && k.cacheKey == q && k.isValid(at) {
		o.meter.addHit()
		return k.result, true
	}
	a, ok := o.results.GetIfPresent(q)
	if !ok || !a.isValid(at) {
		return match.Unknown, false
	}
	o.recent.put(slot, q, a)
	o.meter.addHit()
	return a.result, true
}

func (a *cachedResult) isValid(now int64) bool {
	return now < a.until && a.epoch == a.plugin.epoch.Load() && (a.data == "" || a.data == a.plugin.current().DataVersion())
}

// validUntil returns the end of a result's validity in unix nanoseconds; 0 is invalid
// at once. answerTTL is the TTL of the answer, 0 without one.
func validUntil(op *sdk.Operator, answerTTL time.Duration, now time.Time) int64 {
	ttl := op.CacheTTL
	if answerTTL > 0 && (ttl == 0 || answerTTL < ttl) {
		ttl = answerTTL
	}
	ttl = min(ttl, maxTTL)
	switch op.Purity {
	case sdk.Pure:
		if ttl == 0 {
			return forever
		}
	case sdk.DataDependent:
		if ttl == 0 { // only a call shows that there is newer data
			ttl = maxTTL
		}
	case sdk.TimeDependent:
		if ttl == 0 {
			ttl = defaultTTL
		}
		// The same bucket of time on all nodes, independent of the time of the call.
		return now.Truncate(ttl).Add(ttl).UnixNano()
	default:
		return 0
	}
	return now.Add(ttl).UnixNano()
}

// cacheResult stores the result of a pair. It copies the key, because the pair's text
// belongs to a request.
func (o *Operators) cacheResult(pair *match.Pair, a cachedResult) {
	if a.until == 0 || o.cfg.CacheBytes == 0 {
		return
	}
	q := cacheKeyOf(pair.Program, &pair.Value)
	q.value = strings.Clone(q.value)
	o.results.Set(q, a)
}

// entryBytes is the memory of an entry without its value.
const entryBytes = 256

func newResults(size int) (*otter.Cache[cacheKey, cachedResult], error) {
	return otter.New(&otter.Options[cacheKey, cachedResult]{
		MaximumWeight: uint64(max(size, 1)),
		Weigher:       func(q cacheKey, _ cachedResult) uint32 { return uint32(min(len(q.value)+entryBytes, math.MaxInt32)) },
	})
}
