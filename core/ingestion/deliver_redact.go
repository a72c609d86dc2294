package ingestion

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"hash"
)

// redactor takes properties away, or puts a hash in their place.
type redactor struct {
	hashed map[string]bool // by name; false is removed
	key    []byte
}

// newRedactor returns nil when there is nothing to do.
func newRedactor(c RedactConfig) *redactor {
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

// nested reports whether a property holds properties of a person or a group.
func nested(name string) bool {
	return name == "$set" || name == "$set_once" || name == "$group_set"
}

// clean returns the properties without what is to be taken away. They are not
// changed in place.
func (r *redactor) clean(properties json.RawMessage) json.RawMessage {
	if len(properties) == 0 {
		return properties
	}
	return r.object(make([]byte, 0, len(properties)+64), properties, true)
}

func (r *redactor) object(out, object []byte, top bool) []byte {
	out = append(out, '{')
	start := len(out)
	eachMember(object, func(name event.Text, value []byte) {
		var buf [64]byte
		key := string(name.PlainName(buf[:0]))
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
		case top && nested(key) && len(value) > 0 && value[0] == '{':
			out = r.object(out, value, false)
		case top && key == "$unset" && len(value) > 0 && value[0] == '[':
			out = r.names(out, value)
		default:
			out = append(out, value...)
		}
	})
	return append(out, '}')
}

// names leaves out the names of properties that are removed.
func (r *redactor) names(out, list []byte) []byte {
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

// appendHash appends the hash of a value: of what a string reads as, of the
// text of anything else. Null stays null, for it tells nothing.
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
