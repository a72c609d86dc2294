package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/match"
)

// bucketCache keeps the last bucket, which the condition sets of a flag share.
type bucketCache struct {
	flag    *flag // nil: nothing is cached
	subject int32
	value   float64
	hasher  bucket.Hasher
}

// withinRollout reports whether a subject is inside a rollout.
func (e *Evaluation) withinRollout(f *flag, s rollout, subject int32) match.Result {
	if s.everyone {
		return match.True
	}
	if s.noOne && e.trace == nil {
		return match.False
	}
	id, found := e.identifier(f, subject)
	if s.noOne && found == match.Unknown {
		return match.False // of a trace: it only lacks the bucket
	}
	if found != match.True {
		return found
	}
	if e.buckets.flag != f || e.buckets.subject != subject {
		e.buckets.flag, e.buckets.subject = f, subject
		e.buckets.value = e.buckets.hasher.Of(f.prefix, id, "")
	}
	in := e.buckets.value <= s.limit && !s.noOne
	if e.trace != nil {
		e.trace.rollout(id, e.buckets.value, s)
	}
	return match.Of(in)
}

// pickVariant returns the variant of a matching set: its override, else the
// variant whose interval contains the subject's bucket, else noVariant.
func (e *Evaluation) pickVariant(f *flag, c *condition) (int32, match.Result) {
	if c.variantOverride != noVariant || len(f.variants) == 0 {
		return c.variantOverride, match.True
	}
	id, found := e.identifier(f, c.subject)
	if found != match.True {
		return noVariant, found
	}
	hash := e.buckets.hasher.Of(f.prefix, id, bucket.Variant)
	picked := noVariant
	for i := range f.variants {
		if v := &f.variants[i]; hash >= v.from && hash < v.to {
			if v.key != "" {
				picked = int32(i)
			}
			break
		}
	}
	e.trace.variant(f, hash)
	return picked, match.True
}

// uncertainty is the value that the flag would have if unknown condition sets
// matched.
type uncertainty struct {
	exists  bool
	open    bool // several values are possible
	on      bool
	variant int32
	cause   Cause
}

func (e *Evaluation) addUncertainty(d *uncertainty, f *flag, c *condition) {
	would := outcome{on: true, variant: noVariant}
	switch e.withinRollout(f, c.rollout, c.subject) {
	case match.True:
		variant, known := e.pickVariant(f, c)
		would.variant = variant
		d.open = d.open || known != match.True
	case match.False:
		if !f.earlyExit {
			return
		}
		would.on = false
	default:
		d.open = true
	}
	d.open = d.open || d.exists && (d.on != would.on || d.variant != would.variant)
	d.exists, d.on, d.variant, d.cause = true, would.on, would.variant, e.cause
}

// resolve returns o if the unknown condition sets cannot change its value, else
// a failed outcome.
func (d *uncertainty) resolve(o outcome) outcome {
	if d.exists && (d.open || d.on != o.on || d.variant != o.variant) {
		return outcome{stage: failed, cause: d.cause}
	}
	return o
}
