package transfer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// rowKey is the position of a row in the order in which its table is read: int64 and
// string values. It is never changed after it is made.
type rowKey []any

// newKey copies values of a row.
func newKey(values []any) (rowKey, error) {
	k := make(rowKey, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case int64, string:
			k[i] = v
		case []byte:
			k[i] = string(v)
		default:
			return nil, wrongType(v, "a key")
		}
	}
	return k, nil
}

// encode returns the key as JSON: numbers, and texts in base64, because a text in a
// damaged row may be no valid UTF-8. It is "" without a key.
func (k rowKey) encode() string {
	if k == nil {
		return ""
	}
	parts := make([]any, len(k))
	for i, v := range k {
		parts[i] = v
		if s, ok := v.(string); ok {
			parts[i] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	out, _ := json.Marshal(parts) // numbers and texts cannot fail
	return string(out)
}

// decodeKey is the reverse of encode.
func decodeKey(s string) (rowKey, error) {
	if s == "" {
		return nil, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(s), &parts); err != nil {
		return nil, fmt.Errorf("read the position %q: %w", s, err)
	}
	k := make(rowKey, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseInt(string(p), 10, 64)
		if err == nil {
			k[i] = n
			continue
		}
		var b []byte
		if err := json.Unmarshal(p, &b); err != nil {
			return nil, fmt.Errorf("read the position %q: %w", s, err)
		}
		k[i] = string(b)
	}
	return k, nil
}

// String names the row in a message.
func (k rowKey) String() string {
	parts := make([]string, len(k))
	for i, v := range k {
		parts[i] = fmt.Sprint(v)
		if s, ok := v.(string); ok {
			parts[i] = strconv.QuoteToASCII(s)
		}
	}
	return strings.Join(parts, ", ")
}

// encodeIf is encode if wanted, else "", which no key has.
func (k rowKey) encodeIf(wanted bool) string {
	if !wanted {
		return ""
	}
	return k.encode()
}
