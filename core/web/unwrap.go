package web

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
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

var (
	headerContentEncoding = []byte("Content-Encoding")
	headerAuthorization   = []byte("Authorization")
	formType              = []byte("application/x-www-form-urlencoded")
	multipartType         = []byte("multipart/form-data")
	byteOrderMark         = []byte("\xef\xbb\xbf")
)

// unwrapper takes one body apart.
type unwrapper struct {
	visit   *visit
	payload *Payload
	limits  Limits
	hint    string
	lzDone  bool
}

// unwrap takes layers off b until JSON shows, or nothing more comes off.
// header is the content encoding, which is the outermost layer.
func (u *unwrapper) unwrap(b []byte, header string) ([]byte, error) {
	if f := inflaterOf(header); f != nil && !startsJSON(b) && !isGzip(b) {
		var err error
		if b, err = u.inflate(b, f); err != nil {
			return nil, err
		}
		u.payload.Compression = strings.ToLower(header)
	}
	for range maxLayers {
		next, more, err := u.layer(b)
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

// layer takes one layer off, and reports false when it found none.
func (u *unwrapper) layer(b []byte) (next []byte, more bool, err error) {
	switch {
	case startsJSON(b):
		return b, false, nil
	case isGzip(b):
		u.payload.Compression = wrapGzip
		next, err = u.inflate(b, gunzip)
		return next, true, err
	case u.hint == wrapLZ && !u.lzDone:
		u.lzDone, u.payload.Compression = true, wrapLZ
		next, err = u.unLZ(b)
		return next, true, err
	case looksBase64(b):
		if next = u.base64(b); next != nil {
			if u.payload.Compression == "" {
				u.payload.Compression = wrapBase64
			}
			return next, true, nil
		}
	}
	if u.hint == wrapGzip && u.payload.Compression == "" {
		return nil, false, malformed("this is not gzip")
	}
	return b, false, nil
}

// base64 returns what b stands for, or nil when that is nothing we know.
func (u *unwrapper) base64(b []byte) []byte {
	out := u.visit.block(len(b))
	var ok bool
	out.b, ok = decodeBase64(out.b[:0], b)
	if ok && (startsJSON(out.b) || isGzip(out.b) || looksBase64(out.b)) {
		return out.b
	}
	return nil
}

func malformed(why string) error { return fault.New(fault.Malformed, "", why) }

func tooLarge() error {
	l := looks[fault.TooLarge]
	return fault.New(fault.TooLarge, l.code, l.detail)
}

func isGzip(b []byte) bool {
	return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8
}

// startsJSON looks for the start of an object or a list: nothing else carries
// events, and no other wrapping begins with their characters.
func startsJSON(b []byte) bool {
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

func isFormType(kind []byte) bool {
	return len(kind) >= len(formType) && bytes.EqualFold(kind[:len(formType)], formType)
}

// looksLikeForm reports whether b has one of the fields that forms of client
// libraries have. Without the content type of a form only a leading data
// field counts; with it, JSON is still JSON (curl -d sends it so).
func looksLikeForm(b []byte, typed bool) bool {
	if !typed {
		return bytes.HasPrefix(b, []byte("data="))
	}
	if startsJSON(b) || isGzip(b) {
		return false
	}
	head := b[:min(len(b), 128)]
	for _, name := range [...]string{"data=", "_=", "ip=", "compression=", "api_key=", "token="} {
		if bytes.HasPrefix(head, unsafeBytes(name)) || bytes.Contains(head, unsafeBytes("&"+name)) {
			return true
		}
	}
	return false
}

// clientClock reads the time a client gives in a query: milliseconds since
// 1970, or seconds when it has at most eleven digits; or RFC 3339. It returns
// the zero time for anything else and for what lies before 2020: browsers put
// all sorts of numbers in _ to get around caches.
func clientClock(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC()
	}
	for i := range len(s) {
		if s[i] == '.' {
			s = s[:i]
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || len(s) > 15 {
		return time.Time{}
	}
	if len(s) <= 11 {
		n *= 1000
	}
	if t := time.UnixMilli(n).UTC(); t.Year() >= 2020 {
		return t
	}
	return time.Time{}
}
