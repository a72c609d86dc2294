package sqlitewal

import "encoding/binary"

// readHeader reads the header; false if it is damaged.
func (l *log) readHeader() bool {
	h := l.data[:headerBytes]
	switch binary.BigEndian.Uint32(h) {
	case magicLittle:
	case magicBig:
		l.order = binary.BigEndian
	default:
		return false
	}
	l.salts, l.seed = [8]byte(h[16:24]), sumOf(h[24:])
	l.headerOK = sumAt(l.order, sum{}, h[:24]) == l.seed
	return l.headerOK && int(binary.BigEndian.Uint32(h[8:])) == l.page
}

// maxSequence bounds the number of the log that restoreHeader tries.
const maxSequence = 1 << 16

// restoreHeader writes a header that fits the first frame: its salts are in the
// frame, and the number of the log, which alone is not known, is tried. It
// returns false if none fits.
func (l *log) restoreHeader() bool {
	l.headerOK = false
	first := l.frame(0)
	old := [headerBytes]byte(l.data)
	for _, magic := range []uint32{magicLittle, magicBig} {
		l.order = binary.LittleEndian
		if magic == magicBig {
			l.order = binary.BigEndian
		}
		for _, salts := range [][]byte{first[8:16], old[16:24]} {
			h := l.data[:headerBytes]
			for i, v := range []uint32{magic, version, uint32(l.page)} {
				binary.BigEndian.PutUint32(h[4*i:], v)
			}
			copy(h[16:], salts)
			if l.trySequences(h, first) {
				l.salts, l.seed = [8]byte(h[16:24]), sumOf(h[24:])
				return true
			}
		}
	}
	copy(l.data, old[:])
	return false
}

// trySequences looks for the number of the log with which the first frame was
// written.
func (l *log) trySequences(h, first []byte) bool {
	want := sumOf(first[16:])
	for n := range uint32(maxSequence) {
		binary.BigEndian.PutUint32(h[12:], n)
		seed := sumAt(l.order, sum{}, h[:24])
		if frameSum(l.order, seed, first) == want {
			putSum(h[24:], seed)
			return true
		}
	}
	return false
}
