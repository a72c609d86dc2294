package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Like is a pattern of LIKE in SQL that may be found anywhere in a text: % is
// any run of characters, _ is one character, and a backslash before one of them
// makes it literal. It is immutable and safe for parallel use.
type Like struct {
	parts []part
	fold  bool
	price int64
}

// part is the text between two percent signs. It begins with skip any
// characters, continues with pieces, and ends with trail any characters.
type part struct {
	skip, trail int
	text        string // of one piece that is compared byte by byte, else empty
	pieces      []piece
}

// piece is a text without underscores. gap is the number of characters between
// the start of the piece before it and its own start.
type piece struct {
	gap   int
	runes []rune // lower-case if the pattern ignores case
}

// NewLike prepares a pattern. With fold it ignores case, by the simple folding
// of Unicode.
func NewLike(pattern string, fold bool) *Like {
	l := &Like{fold: fold, price: 1}
	b := likeBuilder{like: l}
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		switch {
		case r == '%':
			b.endPart()
			continue
		case r == '_':
			b.any()
			continue
		case r == '\\' && i < len(pattern) && strings.IndexByte(`%_\`, pattern[i]) >= 0:
			r = rune(pattern[i])
			i++
		}
		if fold {
			r = unicode.ToLower(r)
		}
		b.literal(r)
	}
	b.endPart()
	return l
}

// Price returns the number of comparisons per byte of text in the worst case, at
// least 1.
func (l *Like) Price() int64 { return l.price }

// likeBuilder builds the part that is being read.
type likeBuilder struct {
	like *Like
	part part
	open bool // the last character belongs to the last piece
	gap  int  // underscores since the last piece
}

func (b *likeBuilder) any() { b.open, b.gap = false, b.gap+1 }

func (b *likeBuilder) literal(r rune) {
	if !b.open {
		gap := b.gap
		if n := len(b.part.pieces); n > 0 {
			gap += len(b.part.pieces[n-1].runes)
		} else {
			b.part.skip, gap = gap, 0
		}
		b.part.pieces = append(b.part.pieces, piece{gap: gap})
		b.open, b.gap = true, 0
	}
	last := &b.part.pieces[len(b.part.pieces)-1]
	last.runes = append(last.runes, r)
}

func (b *likeBuilder) endPart() {
	p := b.part
	if len(p.pieces) == 0 {
		p.skip = b.gap
	} else {
		p.trail = b.gap
	}
	if len(p.pieces)+p.skip > 0 {
		if len(p.pieces) == 1 && !b.like.fold && (p.skip+p.trail == 0 || !slices.Contains(p.pieces[0].runes, utf8.RuneError)) {
			p.text = string(p.pieces[0].runes)
		}
		b.like.parts = append(b.like.parts, p)
		b.like.price = max(b.like.price, p.price())
	}
	*b = likeBuilder{like: b.like}
}

// price is the number of comparisons per character: those of a part with several
// pieces are all made at every character.
func (p *part) price() int64 {
	if len(p.pieces) < 2 {
		return 1
	}
	n := len(p.pieces)
	for i := range p.pieces {
		n += len(p.pieces[i].runes)
	}
	return int64(n)
}

// Match reports whether the pattern is found in s.
func (l *Like) Match(s string) bool {
	for i := range l.parts {
		end := l.parts[i].find(s, l.fold)
		if end < 0 {
			return false
		}
		s = s[end:]
	}
	return true
}

// find returns the offset after the first match of the part, or -1.
func (p *part) find(s string, fold bool) int {
	at := skipRunes(s, p.skip)
	if at < 0 {
		return -1
	}
	switch len(p.pieces) {
	case 0:
		return at
	case 1:
		at = p.findOne(s, at, fold)
	default:
		at = p.findPieces(s, at, fold)
	}
	if at < 0 || p.trail == 0 {
		return at
	}
	// The part has a fixed length, so the first match ends first.
	n := skipRunes(s[at:], p.trail)
	if n < 0 {
		return -1
	}
	return at + n
}

// skipRunes returns the offset of the nth character of s, or -1 if s is shorter.
func skipRunes(s string, n int) int {
	at := 0
	for ; n > 0; n-- {
		if at >= len(s) {
			return -1
		}
		if s[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// findOne returns the offset after the first match of the only piece, from at.
func (p *part) findOne(s string, at int, fold bool) int {
	if p.text != "" {
		i := strings.Index(s[at:], p.text)
		if i < 0 {
			return -1
		}
		return at + i + len(p.text)
	}
	spare := slack * (len(s) - at)
	runes := p.pieces[0].runes
	for at+len(runes) <= len(s) {
		n, end := fits(s[at:], runes, fold)
		if n == len(runes) {
			return at + end
		}
		_, size := decode(s[at:])
		at += size
		if spare -= max(n-1, 0); spare < 0 {
			return findByTable(s, at, runes, fold)
		}
	}
	return -1
}

// findPieces returns the offset after the first match of all pieces, from at. It
// moves one position per piece through the text, so that no character between
// the pieces is read again.
func (p *part) findPieces(s string, at int, fold bool) int {
	var fixed [8]int
	starts := append(fixed[:0], at)
	for i := 1; i < len(p.pieces); i++ {
		n := skipRunes(s[at:], p.pieces[i].gap)
		if n < 0 {
			return -1
		}
		at += n
		starts = append(starts, at)
	}
	last := len(starts) - 1
	for starts[last] < len(s) {
		if end := p.fitsAt(s, starts, fold); end >= 0 {
			return end
		}
		for i := range starts {
			_, size := decode(s[starts[i]:])
			starts[i] += size
		}
	}
	return -1
}

// fitsAt returns the end of the last piece if every piece is at its start, else
// -1.
func (p *part) fitsAt(s string, starts []int, fold bool) int {
	end := -1
	for i := range p.pieces {
		runes := p.pieces[i].runes
		n, size := fits(s[starts[i]:], runes, fold)
		if n < len(runes) {
			return -1
		}
		end = starts[i] + size
	}
	return end
}

// decode returns the first character of s, which is not empty.
func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

// fits returns how many of the runes are at the start of s, and their length.
func fits(s string, runes []rune, fold bool) (n, size int) {
	for n < len(runes) && size < len(s) {
		r, width := decode(s[size:])
		if !sameRune(r, runes[n], fold) {
			break
		}
		n++
		size += width
	}
	return n, size
}

func sameRune(got, want rune, fold bool) bool {
	return got == want || fold && unicode.ToLower(got) == want
}

// findByTable returns the offset after the first match of runes, from at, by the
// algorithm of Knuth, Morris and Pratt.
func findByTable(s string, at int, runes []rune, fold bool) int {
	table := make([]int32, len(runes))
	for i, k := 1, int32(0); i < len(runes); i++ {
		for k > 0 && runes[i] != runes[k] {
			k = table[k-1]
		}
		if runes[i] == runes[k] {
			k++
		}
		table[i] = k
	}
	k := int32(0)
	for at < len(s) {
		r, size := decode(s[at:])
		at += size
		if fold {
			r = unicode.ToLower(r)
		}
		for k > 0 && r != runes[k] {
			k = table[k-1]
		}
		if r == runes[k] {
			k++
		}
		if int(k) == len(runes) {
			return at
		}
	}
	return -1
}
