package rowcodec

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// Marks stand for the content of a string. JSON has no unescaped control characters.
const (
	markUUID       = 1 // 16 bytes follow
	markDistinctID = 2
	markURL        = 3
	lastMark       = markURL
)

const (
	uuidSize = 16
	uuidText = 36
)

// appendReplaced replaces the contents of strings by marks. It returns false if plain
// has a byte that is a mark.
func appendReplaced(dst, plain []byte, c Columns) ([]byte, bool) {
	if hasMark(plain) {
		return dst, false
	}
	copied := 0 // bytes of plain in dst
	for i := 0; ; {
		quote := bytes.IndexByte(plain[i:], '"')
		if quote < 0 {
			return append(dst, plain[copied:]...), true
		}
		i += quote + 1
		var mark byte
		n := uuidText
		switch text := plain[i:]; {
		case isContent(text, c.DistinctID):
			mark, n = markDistinctID, len(c.DistinctID)
		case isContent(text, c.URL):
			mark, n = markURL, len(c.URL)
		case isUUID(text):
			mark = markUUID
		default:
			continue
		}
		dst = append(append(dst, plain[copied:i]...), mark)
		if mark == markUUID {
			dst = appendUUIDBytes(dst, plain[i:])
		}
		i += n
		copied = i
	}
}

// hasMark reports whether text has a mark or a zero byte.
func hasMark(text []byte) bool { return indexMark(text) < len(text) }

// indexMark returns the index of the first byte that is a mark or zero, the length of
// text without one. It looks at eight bytes at a time.
func indexMark(text []byte) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		v := binary.LittleEndian.Uint64(text[i:])
		// The lowest set bit is of the first byte that is at most lastMark.
		if found := (v - each*(lastMark+1)) &^ v & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text) && text[i] > lastMark; i++ {
	}
	return i
}

// isContent reports whether text begins with content and the end of a string.
func isContent(text, content []byte) bool {
	n := len(content)
	return n > 1 && len(text) > n && text[n] == '"' && text[0] == content[0] && bytes.Equal(text[:n], content)
}

// isUUID reports whether text begins with a UUID in lower case and the end of a string.
func isUUID(text []byte) bool {
	if len(text) <= uuidText || text[uuidText] != '"' || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	for i, b := range text[:uuidText] {
		if isDash(i) {
			continue
		}
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') {
			return false
		}
	}
	return true
}

func isDash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

func appendUUIDBytes(dst, text []byte) []byte {
	var digits [2 * uuidSize]byte
	n := copy(digits[:], text[:8])
	n += copy(digits[n:], text[9:13])
	n += copy(digits[n:], text[14:18])
	n += copy(digits[n:], text[19:23])
	copy(digits[n:], text[24:uuidText])
	var raw [uuidSize]byte
	_, _ = hex.Decode(raw[:], digits[:]) // isUUID has checked the digits
	return append(dst, raw[:]...)
}

func appendUUIDText(dst, raw []byte) []byte {
	var digits [uuidText]byte
	hex.Encode(digits[:8], raw[:4])
	hex.Encode(digits[9:13], raw[4:6])
	hex.Encode(digits[14:18], raw[6:8])
	hex.Encode(digits[19:23], raw[8:10])
	hex.Encode(digits[24:], raw[10:uuidSize])
	digits[8], digits[13], digits[18], digits[23] = '-', '-', '-', '-'
	return append(dst, digits[:]...)
}

// appendRestored reverses appendReplaced. It fails with ErrDamaged.
func appendRestored(dst, replaced []byte, c Columns) ([]byte, error) {
	start := len(dst)
	for {
		i := indexMark(replaced)
		dst = append(dst, replaced[:i]...)
		if i == len(replaced) {
			break
		}
		mark := replaced[i]
		replaced = replaced[i+1:]
		switch mark {
		case markUUID:
			if len(replaced) < uuidSize {
				return dst[:start], fmt.Errorf("%w: a UUID is cut off", ErrDamaged)
			}
			dst, replaced = appendUUIDText(dst, replaced[:uuidSize]), replaced[uuidSize:]
		case markDistinctID:
			dst = append(dst, c.DistinctID...)
		case markURL:
			dst = append(dst, c.URL...)
		default:
			return dst[:start], fmt.Errorf("%w: unknown mark", ErrDamaged)
		}
		if len(dst)-start > MaxPlain {
			return dst[:start], fmt.Errorf("%w: too long", ErrDamaged)
		}
	}
	return dst, nil
}
