// Package ignored names the parts of a management request that had no effect.
//
// Clients misspell parameters, use those of another version, or send fields that
// this server does not have. Such requests succeed, as clients expect, and the
// answer header Guidon-Ignored has the names of query parameters and body fields
// that the handler did not read. Nothing declares the known names: Query records
// each parameter that is read, and fields.Fields does the same for the body, so
// what a handler does not use is always named.
package ignored

import (
	"slices"
	"strings"
)

// Header is the answer header with the ignored names.
const Header = "Guidon-Ignored"

// maxHeader bounds the length of the header in bytes. Names beyond it are
// replaced by an ellipsis.
const maxHeader = 1000

// Query records which parameters of a query were read. The zero Query has read
// none. It is for one goroutine.
type Query struct{ read []string }

// Read records names as read.
func (q *Query) Read(names ...string) {
	for _, name := range names {
		if !slices.Contains(q.read, name) {
			q.read = append(q.read, name)
		}
	}
}

// Has reports whether the name was read.
func (q *Query) Has(name string) bool { return slices.Contains(q.read, name) }

// Value returns the value of the header for the names, without repetitions; empty
// without names. Bytes that a list of tokens cannot contain are percent-encoded.
func Value(names []string) string {
	var out strings.Builder
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		token := escaped(name)
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		if out.Len()+len(token) > maxHeader {
			out.WriteString("...")
			break
		}
		out.WriteString(token)
	}
	return out.String()
}

const hexDigits = "0123456789ABCDEF"

func escaped(name string) string {
	var out strings.Builder
	for i := range len(name) {
		b := name[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("!#$&'*+-.^_`|~[]@:/", b) >= 0:
			out.WriteByte(b)
		default:
			out.WriteByte('%')
			out.WriteByte(hexDigits[b>>4])
			out.WriteByte(hexDigits[b&15])
		}
	}
	if out.Len() == 0 {
		return "%"
	}
	return out.String()
}
