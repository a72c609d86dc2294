package flags

import "github.com/guidonhq/guidon/core/match"

// within tells whether a subject is inside a rollout.
func (r *run) within(f *flag, s share, subject int32) match.Result {
	if s.everyone {
		return match.True
	}
	if s.nobody && r.trace == nil {
		return match.False
	}
	id, there := r.identifier(f, subject)
	if there != match.True {
		return there
	}
	if r.hashed != f || r.hashedFor != subject {
		r.hashed, r.hashedFor = f, subject
		r.hashedTo, r.hash = bucket(r.hash, f.prefix, id, "")
	}
	in := r.hashedTo <= s.limit && !s.nobody
	r.trace.rollout(id, r.hashedTo, s)
	return match.Of(in)
}

// variant picks what a matching set gives: its override, else the variant
// whose share holds the subject's bucket, else none.
func (r *run) variant(f *flag, c *condition) (int32, match.Result) {
	if c.override != noVariant || len(f.variants) == 0 {
		return c.override, match.True
	}
	id, there := r.identifier(f, c.subject)
	if there != match.True {
		return noVariant, there
	}
	var hash float64
	hash, r.hash = bucket(r.hash, f.prefix, id, variantSalt)
	picked := noVariant
	for i := range f.variants {
		if v := &f.variants[i]; hash >= v.from && hash < v.to {
			if v.key != "" {
				picked = int32(i)
			}
			break
		}
	}
	r.trace.variant(f, hash)
	return picked, match.True
}

// doubt remembers what condition sets that cannot be told would have given.
type doubt struct {
	raised  bool
	open    bool // it could have been anything
	on      bool
	variant int32
	cause   Cause
}

func (r *run) doubt(d *doubt, f *flag, c *condition) {
	would := outcome{on: true, variant: noVariant}
	switch r.within(f, c.rollout, c.subject) {
	case match.True:
		variant, known := r.variant(f, c)
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
	d.open = d.open || d.raised && (d.on != would.on || d.variant != would.variant)
	d.raised, d.on, d.variant, d.cause = true, would.on, would.variant, r.cause
}

// settle is o unless a doubt could have made it another value.
func (d *doubt) settle(o outcome) outcome {
	if d.raised && (d.open || d.on != o.on || d.variant != o.variant) {
		return outcome{stage: failed, cause: d.cause}
	}
	return o
}
