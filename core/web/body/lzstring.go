package body

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// LZ-string is a dictionary coder over UTF-16, from a small JavaScript library
// of 2013. The compressed form is a stream of bits, six in a base64 character,
// each number with its lowest bit first. Code 0 precedes a unit of 8 bits, 1 a
// unit of 16 bits, 2 is the end; every other code is an entry of the dictionary.
// After each text but the first, the dictionary gains the previous text plus the
// first unit of the current one. Both are adjacent in the output, so an entry is
// a position and a length in it.

// lzEntry is a dictionary entry: its position and length in the output. It is
// small because a hostile body can create millions of them.
type lzEntry struct{ at, n int32 }

type lzDecoder struct {
	src        []byte // base64 text, read from the front
	acc        uint64 // bits of src that are not used yet
	have       int    // number of bits in acc
	dict       []lzEntry
	untilWider int // number of entries until codes get one bit wider
	width      int
	out        []uint16
}

// unLZ decodes LZ-string in base64 to UTF-8. A lone surrogate becomes its three
// bytes in CESU-8.
func (u *unwrapper) unLZ(b []byte) ([]byte, error) {
	limit := u.limits.InflatedBytes
	d := lzDecoder{src: b, dict: make([]lzEntry, 3, 512), untilWider: 4, width: 3}
	if !d.run(limit) {
		return nil, malformed("the LZ-string data is damaged")
	}
	out := u.decoder.buffer(len(d.out))
	out.b = appendUTF16(out.b, d.out)
	if len(out.b) > limit {
		return nil, tooLarge()
	}
	return out.b, nil
}

// run fills out, with more than limit units if there are more, and returns false
// if the input is damaged or has no end.
func (d *lzDecoder) run(limit int) bool {
	prev, ok := d.text(d.bits(2), lzEntry{})
	if !ok || prev.n == 0 {
		return ok
	}
	for len(d.out) <= limit {
		next, ok := d.text(d.bits(d.width), prev)
		if !ok || next.n == 0 {
			return ok
		}
		d.learn(lzEntry{prev.at, prev.n + 1})
		prev = next
	}
	return true
}

// text writes the text of a code and returns its entry; n is 0 at the end of the
// data.
func (d *lzDecoder) text(code int, prev lzEntry) (e lzEntry, ok bool) {
	at := int32(len(d.out))
	switch {
	case code == 0 || code == 1:
		unit := d.bits(8 << code)
		if unit < 0 {
			return e, false
		}
		d.out = append(d.out, uint16(unit))
		if len(d.dict) > 3 {
			d.learn(lzEntry{at, 1})
		} else {
			d.dict = append(d.dict, lzEntry{at, 1})
		}
		return lzEntry{at, 1}, true
	case code == 2:
		return e, true
	case code >= 3 && code < len(d.dict):
		e = d.dict[code]
	case code == len(d.dict) && prev.n > 0:
		e = lzEntry{prev.at, prev.n + 1}
		d.out = append(d.out, d.out[prev.at:prev.at+prev.n]...)
		d.out = append(d.out, d.out[prev.at])
		return lzEntry{at, e.n}, true
	default:
		return e, false
	}
	d.out = append(d.out, d.out[e.at:e.at+e.n]...)
	return lzEntry{at, e.n}, true
}

// learn adds an entry and widens the codes when their numbers are used up.
func (d *lzDecoder) learn(e lzEntry) {
	d.dict = append(d.dict, e)
	if d.untilWider--; d.untilWider == 0 {
		d.untilWider = 1 << d.width
		d.width++
	}
}

// bits reads a number of n bits, or -1 at the end of the input.
func (d *lzDecoder) bits(n int) int {
	for d.have < n {
		v := uint8(base64Skip)
		for len(d.src) > 0 && v == base64Skip {
			v, d.src = base64Values[d.src[0]], d.src[1:]
		}
		if v >= base64Skip {
			return -1
		}
		d.acc = d.acc<<6 | uint64(v)
		d.have += 6
	}
	d.have -= n
	return int(bits.Reverse32(uint32(d.acc>>d.have)) >> (32 - n))
}

func appendUTF16(dst []byte, units []uint16) []byte {
	for i := 0; i < len(units); i++ {
		switch u := rune(units[i]); {
		case u < utf8.RuneSelf:
			dst = append(dst, byte(u))
		case !utf16.IsSurrogate(u):
			dst = utf8.AppendRune(dst, u)
		default:
			if i+1 < len(units) {
				if r := utf16.DecodeRune(u, rune(units[i+1])); r != utf8.RuneError {
					dst = utf8.AppendRune(dst, r)
					i++
					continue
				}
			}
			dst = appendSurrogate(dst, u)
		}
	}
	return dst
}

func appendSurrogate(dst []byte, u rune) []byte {
	return append(dst, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
}
