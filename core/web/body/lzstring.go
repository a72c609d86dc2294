package body

import (
	"bytes"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/web/budget"
)

// LZ-string is a dictionary coder over UTF-16, from a small JavaScript library
// of 2013. The compressed form is a stream of bits, six in a base64 character,
// each number with its lowest bit first. Code 0 precedes a unit of 8 bits, 1 a
// unit of 16 bits, 2 is the end; every other code is an entry of the dictionary.
// After each text but the first, the dictionary gains the previous text plus the
// first unit of the current one. Both are adjacent in the output, so an entry is
// a position and a length in it.
//
// Every unit is written as its one to three bytes in UTF-8, a surrogate as in
// CESU-8, so that texts are copied as bytes and no second buffer is needed; the
// pairs of surrogates are joined at the end, in place.

// lzEntry is a dictionary entry: its position and length in the output. It is
// small because a hostile body can create millions of them.
type lzEntry struct{ at, n int32 }

// lzEntryBytes is the memory of an entry.
const lzEntryBytes = 8

type lzDecoder struct {
	src        []byte // base64 text, read from the front
	acc        uint64 // bits of src that are not used yet
	have       int    // number of bits in acc
	dict       []lzEntry
	untilWider int // number of entries until codes get one bit wider
	width      int
	out        *budget.Buffer
	limit      int // of out
	memory     *budget.Account
	surrogates bool
	err        error // of the limit or of memory; damaged data has none
}

// unLZ decodes LZ-string in base64 to UTF-8. A lone surrogate becomes its three
// bytes in CESU-8.
func (u *unwrapper) unLZ(b []byte) ([]byte, error) {
	out, err := u.decoder.buffer(4 * len(b))
	if err != nil {
		return nil, err
	}
	limit := u.limits.InflatedBytes
	d := lzDecoder{
		src: b, dict: make([]lzEntry, 3, 512), untilWider: 4, width: 3,
		out: out, limit: limit + limit/2, memory: u.decoder.memory, // a pair of surrogates shrinks from 6 bytes to 4
	}
	ok := d.run()
	defer d.memory.Return(d.dictBytes())
	switch {
	case d.err != nil:
		return nil, d.err
	case !ok:
		return nil, malformed("the LZ-string data is damaged")
	}
	if d.surrogates {
		out.B = joinSurrogates(out.B)
	}
	if len(out.B) > limit {
		return nil, budget.ErrTooLarge
	}
	return out.B, nil
}

// run fills out and returns false if the input is damaged or has no end, or with
// err set.
func (d *lzDecoder) run() bool {
	prev, ok := d.text(d.bits(2), lzEntry{})
	if !ok || prev.n == 0 {
		return ok
	}
	for {
		next, ok := d.text(d.bits(d.width), prev)
		if !ok || next.n == 0 {
			return ok
		}
		// The previous text and the first unit of this one are adjacent.
		if !d.learn(lzEntry{prev.at, prev.n + unitLen(d.out.B[next.at])}) {
			return false
		}
		prev = next
	}
}

// text writes the text of a code and returns its entry; n is 0 at the end of the
// data.
func (d *lzDecoder) text(code int, prev lzEntry) (e lzEntry, ok bool) {
	at := int32(len(d.out.B))
	switch {
	case code == 0 || code == 1:
		unit := d.bits(8 << code)
		if unit < 0 || !d.writeUnit(rune(unit)) {
			return e, false
		}
		e = lzEntry{at, int32(len(d.out.B)) - at}
		if len(d.dict) > 3 {
			return e, d.learn(e)
		}
		d.dict = append(d.dict, e)
		return e, true
	case code == 2:
		return e, true
	case code >= 3 && code < len(d.dict):
		e = d.dict[code]
		return lzEntry{at, e.n}, d.repeat(e)
	case code == len(d.dict) && prev.n > 0:
		e = lzEntry{prev.at, prev.n + unitLen(d.out.B[prev.at])}
		return lzEntry{at, e.n}, d.repeat(prev) && d.repeat(lzEntry{prev.at, e.n - prev.n})
	default:
		return e, false
	}
}

// repeat appends the text of e.
func (d *lzDecoder) repeat(e lzEntry) bool {
	if d.err = d.out.Grow(int(e.n), d.limit); d.err == nil {
		d.out.B = append(d.out.B, d.out.B[e.at:e.at+e.n]...)
	}
	return d.err == nil
}

func (d *lzDecoder) writeUnit(u rune) bool {
	if d.err = d.out.Grow(utf8.UTFMax, d.limit); d.err != nil {
		return false
	}
	if utf16.IsSurrogate(u) {
		d.surrogates = true
		d.out.B = appendSurrogate(d.out.B, u)
	} else {
		d.out.B = utf8.AppendRune(d.out.B, u)
	}
	return true
}

// learn adds an entry and widens the codes when their numbers are used up.
func (d *lzDecoder) learn(e lzEntry) bool {
	if len(d.dict) == cap(d.dict) && !d.growDict() {
		return false
	}
	d.dict = append(d.dict, e)
	if d.untilWider--; d.untilWider == 0 {
		d.untilWider = 1 << d.width
		d.width++
	}
	return true
}

func (d *lzDecoder) growDict() bool {
	old := d.dictBytes()
	next := 2 * cap(d.dict)
	if d.err = d.memory.Take(next * lzEntryBytes); d.err != nil {
		return false
	}
	d.dict = append(make([]lzEntry, 0, next), d.dict...)
	d.memory.Return(old)
	return true
}

// dictBytes is what was taken for the dictionary; its first size is not counted.
func (d *lzDecoder) dictBytes() int {
	if n := cap(d.dict); n > 512 {
		return n * lzEntryBytes
	}
	return 0
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

// unitLen returns the length of the unit that starts with c.
func unitLen(c byte) int32 {
	switch {
	case c < utf8.RuneSelf:
		return 1
	case c < 0xe0:
		return 2
	}
	return 3
}

// joinSurrogates replaces the pairs of surrogates in b by their character.
func joinSurrogates(b []byte) []byte {
	out := b[:0]
	for {
		i := bytes.IndexByte(b, surrogateLead)
		if i < 0 {
			return append(out, b...)
		}
		out, b = append(out, b[:i]...), b[i:]
		r := utf16.DecodeRune(unitAt(b), unitAt(b[min(len(b), 3):]))
		if r != utf8.RuneError {
			out, b = utf8.AppendRune(out, r), b[6:]
		} else {
			out, b = append(out, b[:3]...), b[3:]
		}
	}
}

// surrogateLead is the first byte of U+D000 to U+DFFF.
const surrogateLead = 0xed

// unitAt returns the unit of three bytes at the start of b, 0 if there is none.
func unitAt(b []byte) rune {
	if len(b) < 3 || b[0] != surrogateLead {
		return 0
	}
	return rune(b[0]&0x0f)<<12 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}

func appendSurrogate(dst []byte, u rune) []byte {
	return append(dst, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
}
