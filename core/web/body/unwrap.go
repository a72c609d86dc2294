package body

import (
	"bytes"
	"strings"

	"github.com/guidonhq/guidon/core/web/budget"
)

// Wrappings of a body.
const (
	wrapGzip   = "gzip"
	wrapLZ     = "lz64"
	wrapBase64 = "base64"
)

// maxLayers is the maximum number of removed layers. Known clients use up to
// three: base64 of base64 of gzip.
const maxLayers = 4

var byteOrderMark = []byte("\xef\xbb\xbf")

// unwrapper removes the layers of one body.
type unwrapper struct {
	decoder *Decoder
	limits  Limits
	hint    string
	lzDone  bool
}

// unwrap removes layers until JSON shows or no known layer is left. header is the
// content encoding, the outermost layer.
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

// peel removes one layer. It returns false without a known one.
func (u *unwrapper) peel(b []byte) (next []byte, more bool, err error) {
	switch {
	case StartsJSON(b):
		return b, false, nil
	case isGzip(b):
		u.decoder.payload.Compression = wrapGzip
		next, err = u.inflate(b, gzipInflater)
		return next, true, err
	case u.hint == wrapLZ && !u.lzDone:
		u.lzDone, u.decoder.payload.Compression = true, wrapLZ
		next, err = u.unLZ(b)
		return next, true, err
	case looksBase64(b):
		if next, err = u.base64(b); err != nil {
			return nil, false, err
		}
		if next != nil {
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

// base64 returns the decoded b, or nil if the result is not a known format.
func (u *unwrapper) base64(b []byte) ([]byte, error) {
	size := len(b)/4*3 + 3
	out, err := u.decoder.buffer(size)
	if err == nil {
		err = out.Grow(size, max(size, u.limits.InflatedBytes))
	}
	if err != nil {
		return nil, err
	}
	var d base64Decoder
	for len(b) > 0 {
		n := min(len(b), budget.YieldBytes)
		var ok bool
		if out.B, ok = d.append(out.B, b[:n]); !ok {
			return nil, nil
		}
		b = b[n:]
		u.decoder.memory.Yield()
	}
	if StartsJSON(out.B) || isGzip(out.B) || looksBase64(out.B) {
		return out.B, nil
	}
	return nil, nil
}

func isGzip(b []byte) bool {
	return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8
}

// StartsJSON reports whether b starts with an object or a list. Events come in
// nothing else, and no other wrapping starts with these characters.
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
