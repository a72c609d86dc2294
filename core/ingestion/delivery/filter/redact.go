package filter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/jsontext"
)

// redactor removes properties or replaces their values with hashes.
type redactor struct {
	hashed map[string]bool // by property; false is removed
	key    []byte
}

// newRedactor returns nil if the configuration redacts nothing.
func newRedactor(c settings.Redaction) *redactor {
	if len(c.Remove)+len(c.Hash) == 0 {
		return nil
	}
	r := &redactor{hashed: make(map[string]bool), key: []byte(c.HashKey)}
	for _, name := range c.Hash {
		r.hashed[name] = true
	}
	for _, name := range c.Remove { // removed wins
		r.hashed[name] = false
	}
	return r
}

// isNested reports whether a property holds properties of a person or a group.
func isNested(name string) bool {
	return name == "$set" || name == "$set_once" || name == "$group_set"
}

// redact returns the redacted properties. It does not change its argument.
func (r *redactor) redact(properties json.RawMessage) json.RawMessage {
	if len(properties) == 0 {
		return properties
	}
	return r.appendObject(make([]byte, 0, len(properties)+64), properties, true)
}

func (r *redactor) appendObject(out, object []byte, top bool) []byte {
	out = append(out, '{')
	start := len(out)
	eachMember(object, func(name jsontext.String, value []byte) {
		var buf [64]byte
		key := string(name.Resolve(buf[:0]))
		hashed, listed := r.hashed[key]
		if listed && !hashed {
			return
		}
		if len(out) > start {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name.Raw...), '"', ':')
		switch {
		case hashed:
			out = r.appendHash(out, value)
		case top && isNested(key) && len(value) > 0 && value[0] == '{':
			out = r.appendObject(out, value, false)
		case top && key == "$unset" && len(value) > 0 && value[0] == '[':
			out = r.appendNames(out, value)
		default:
			out = append(out, value...)
		}
	})
	return append(out, '}')
}

// appendNames appends a list of property names without the redacted ones.
func (r *redactor) appendNames(out, list []byte) []byte {
	var names, kept []json.RawMessage
	if json.Unmarshal(list, &names) != nil {
		return append(out, "[]"...)
	}
	for _, raw := range names {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			if _, listed := r.hashed[name]; listed {
				continue
			}
		}
		kept = append(kept, raw)
	}
	out = append(out, '[')
	for i, raw := range kept {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// appendHash appends the hash of a value: of the text of a string, of the JSON of
// another value. null stays null.
func (r *redactor) appendHash(out, value []byte) []byte {
	if string(value) == "null" {
		return append(out, value...)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	}
	var h hash.Hash
	if len(r.key) > 0 {
		h = hmac.New(sha256.New, r.key)
	} else {
		h = sha256.New()
	}
	h.Write([]byte(s))
	out = append(out, '"')
	out = hex.AppendEncode(out, h.Sum(nil))
	return append(out, '"')
}
