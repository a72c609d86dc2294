package body

import (
	"bytes"
	"strings"
)

// How a body can be wrapped.
const (
	wrapGzip   = "gzip"
	wrapLZ     = "lz64"
	wrapBase64 = "base64"
)

// maxLayers is how many wrappings are taken off: base64 of base64 of gzip is
// the most that any client was ever seen to make.
const maxLayers = 4

var byteOrderMark = []byte("\xef\xbb\xbf")

// unwrapper takes one body apart.
type unwrapper struct {
	decoder *Decoder
	limits  Limits
	hint    string
	lzDone  bool
}

// unwrap takes layers off b until JSON shows, or nothing more comes off.
// header is the content encoding, which is the outermost layer.
func (u *unwrapper) unwrap(b []byte, header string) ([]byte, error) {
	if f := inflaterOf(header); f != nil && !StartsJSON(b) && !isGzip(b) {
		var err error
		if b, err = u.inflate(b, f); err != nil {
			return nil, err
		}
		u.decoder.payload.Compression = strings.ToLower(header)
	}
	for range maxLayers {
		next, more, err := u.peel(b)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		b = next
	}
	return bytes.TrimPrefix(b, byteOrderMark), nil
}

// peel takes one layer off, and reports false when it found none.
func (u *unwrapper) peel(b []byte) (next []byte, more bool, err error) {
	switch {
	case StartsJSON(b):
		return b, false, nil
	case isGzip(b):
		u.decoder.payload.Compression = wrapGzip
		next, err = u.inflate(b, gunzip)
		return next, true, err
	case u.hint == wrapLZ && !u.lzDone:
		u.lzDone, u.decoder.payload.Compression = true, wrapLZ
		next, err = u.unLZ(b)
		return next, true, err
	case looksBase64(b):
		if next = u.base64(b); next != nil {
			if u.decoder.payload.Compression == "" {
				u.decoder.payload.Compression = wrapBase64
			}
			return next, true, nil
		}
	}
	if u.hint == wrapGzip && u.decoder.payload.Compression == "" {
		return nil, false, malformed("this is not gzip")
	}
	return b, false, nil
}

// base64 returns what b stands for, or nil when that is nothing we know.
func (u *unwrapper) base64(b []byte) []byte {
	out := u.decoder.buffer(len(b))
	var ok bool
	out.b, ok = decodeBase64(out.b[:0], b)
	if ok && (StartsJSON(out.b) || isGzip(out.b) || looksBase64(out.b)) {
		return out.b
	}
	return nil
}

func isGzip(b []byte) bool {
	return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8
}

// StartsJSON looks for the start of an object or a list: nothing else carries
// events, and no other wrapping begins with their characters.
func StartsJSON(b []byte) bool {
	if len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		return true
	}
	b = bytes.TrimPrefix(b, byteOrderMark)
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return true
		default:
			return false
		}
	}
	return false
}
