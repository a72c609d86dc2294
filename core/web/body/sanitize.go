package body

import (
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web/budget"
)

// Sanitize checks and repairs the JSON of a payload that was decoded with
// Limits.Unchecked. Its failures are those of Decode.
func (d *Decoder) Sanitize(limits Limits) error {
	u := unwrapper{decoder: d, limits: limits}
	text, err := u.sanitize(d.payload.JSON)
	if err != nil {
		return limits.withCode(err)
	}
	d.payload.JSON = text
	return nil
}

// sanitize is the last step of Decode: it checks that b is JSON and repairs
// what can be repaired.
func (u *unwrapper) sanitize(b []byte) ([]byte, error) {
	s := jsontext.Scanner{KeepLines: true, MaxDepth: u.limits.Depth}
	s.Reset(b)
	if !s.Check() {
		return nil, malformed("JSON: " + s.Problem())
	}
	if !s.Dirty {
		return b, nil
	}
	out, err := u.decoder.buffer(len(b) + len(b)/8)
	if err != nil {
		return nil, err
	}
	// A repair replaces one byte by up to six.
	if err := out.Grow(min(6*len(b), u.limits.InflatedBytes), u.limits.InflatedBytes); err != nil {
		return nil, err
	}
	if out.B = jsontext.Sanitize(out.B, b, u.limits.InflatedBytes); len(out.B) > u.limits.InflatedBytes {
		return nil, budget.ErrTooLarge
	}
	return out.B, nil
}
