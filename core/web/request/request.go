// Package request has small pure functions on requests: their ids, numbers in paths, and
// the queries of links.
package request

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
)

// NewID returns a random id for a request: a UUID of version 4. It is unique, not secret.
func NewID() (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// ID returns given if it is a valid id, else a random one.
func ID(given []byte) string {
	if validID(given) {
		return string(given)
	}
	id := NewID()
	return hex.EncodeToString(id[:])
}

func validID(id []byte) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for _, b := range id {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.', b == '_', b == ':', b == '-':
		default:
			return false
		}
	}
	return true
}

// RejectNUL rejects NUL in the query: no store can search for it.
func RejectNUL(uri *fasthttp.URI) error {
	if !bytes.Contains(uri.QueryString(), []byte("%00")) {
		return nil
	}
	for name, value := range uri.QueryArgs().All() {
		if bytes.IndexByte(value, 0) >= 0 || bytes.IndexByte(name, 0) >= 0 {
			attr := strings.ReplaceAll(string(name), "\x00", "")
			return fault.Field(attr, "null_characters_not_allowed", "Null characters are not allowed.")
		}
	}
	return nil
}

// IsNumber reports whether s is a project number that fits an int64.
func IsNumber(s string) bool {
	if len(s) == 0 || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// PageQuery returns a query with another limit and offset; an offset of 0 is omitted, and
// so are the parameters named secret: links are copied and logged. Other parameters keep
// their place and spelling.
func PageQuery(query string, limit, offset int, secret ...string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); part == "" || (err == nil && (name == "limit" || name == "offset" || slices.Contains(secret, name))) {
			continue
		}
		kept = append(kept, part)
	}
	kept = append(kept, "limit="+strconv.Itoa(limit))
	if offset > 0 {
		kept = append(kept, "offset="+strconv.Itoa(offset))
	}
	return "?" + strings.Join(kept, "&")
}
