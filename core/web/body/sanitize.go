package body

import "github.com/guidonhq/guidon/core/jsontext"

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
	out := u.decoder.buffer(len(b) + len(b)/8)
	if out.b = jsontext.Sanitize(out.b, b, u.limits.InflatedBytes); len(out.b) > u.limits.InflatedBytes {
		return nil, tooLarge()
	}
	return out.b, nil
}
