package body

import (
	"bytes"

	"github.com/guidonhq/guidon/core/fault"
)

// MaxFields is the maximum number of fields of a client library's form. They send
// about ten.
const MaxFields = 1000

var errTooManyFields = fault.New(fault.TooLarge, "request_too_large", "Request too large: the form has too many fields.")

// formNames are the fields of forms that client libraries send.
var formNames = [...]string{"data", "compression", "api_key", "token", "project_id", "_", "sent_at"}

// form holds the known fields of a form body.
type form struct {
	present bool // the body was a form
	values  [len(formNames)][]byte
}

// slot returns the place for the value of a field, nil if the field is not known
// or has a value.
func (f *form) slot(name []byte) *[]byte {
	f.present = true
	for i, known := range &formNames {
		if string(name) == known && f.values[i] == nil {
			return &f.values[i]
		}
	}
	return nil
}

func (f *form) value(name string) []byte {
	if !f.present {
		return nil
	}
	for i, known := range &formNames {
		if name == known {
			return f.values[i]
		}
	}
	return nil
}

// EachField calls fn for the fields of a URL-encoded form in order; the name is
// unescaped, the value is not (see AppendUnescaped). It fails with TooLarge after
// limit fields, and with the first error of fn. It allocates nothing for usual
// names.
func EachField(raw []byte, limit int, fn func(name, value []byte) error) error {
	for n := 0; len(raw) > 0; n++ {
		if n == limit {
			return errTooManyFields
		}
		var field []byte
		if i := bytes.IndexByte(raw, '&'); i >= 0 {
			field, raw = raw[:i], raw[i+1:]
		} else {
			field, raw = raw, nil
		}
		name, value, _ := bytes.Cut(field, []byte{'='})
		if bytes.IndexByte(name, '%') >= 0 || bytes.IndexByte(name, '+') >= 0 {
			name = AppendUnescaped(nil, name)
		}
		if err := fn(name, value); err != nil {
			return err
		}
	}
	return nil
}

// AppendUnescaped appends the value of a name or value of a URL-encoded form: a
// plus sign is a space, and an escape that is not valid stays.
func AppendUnescaped(dst, b []byte) []byte {
	dst, _ = unescapeSome(dst, b, len(b))
	return dst
}

// unescapeSome is AppendUnescaped for the first n bytes of b and the rest of an
// escape there. It returns the number of bytes that it has read.
func unescapeSome(dst, b []byte, n int) ([]byte, int) {
	i := 0
	for ; i < min(n, len(b)); i++ {
		switch c := b[i]; {
		case c == '+':
			dst = append(dst, ' ')
		case c == '%' && i+2 < len(b) && isHex(b[i+1]) && isHex(b[i+2]):
			dst = append(dst, unhex(b[i+1])<<4|unhex(b[i+2]))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst, i
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
