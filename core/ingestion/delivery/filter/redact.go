package filter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/sdk"
)

// The fields of an event that redact names. They can be hashed and not removed: sinks
// need them for order and deduplication.
const (
	fieldDistinctID = "distinct_id"
	fieldUUID       = "uuid"
)

// idProperties are properties with a distinct id of the person. They are hashed with the
// field.
var idProperties = []string{fieldDistinctID, "$distinct_id", "$anon_distinct_id", "$user_id", "$device_id"}

// redactor removes properties or replaces their values with hashes, and hashes the ids
// of events.
type redactor struct {
	hashed  map[string]bool // by path; false is removed
	nested  []rule          // the paths of hashed with a dot
	aliases map[string]bool // as hashed, for events whose alias is a distinct id
	key     []byte
}

// rule is a path below an object. A path joins the names of properties with dots. A name
// may have dots itself, so that a path is compared in every way to split it.
type rule struct {
	path   string
	hashed bool // false is removed
}

// newRedactor returns nil if the configuration redacts nothing.
func newRedactor(c settings.Redaction) (*redactor, error) {
	if len(c.Remove)+len(c.Hash) == 0 {
		return nil, nil
	}
	r := &redactor{hashed: make(map[string]bool), key: []byte(c.HashKey)}
	for _, path := range c.Hash {
		r.hashed[path] = true
		if path == fieldDistinctID {
			for _, name := range idProperties {
				r.hashed[name] = true
			}
		}
	}
	for _, path := range c.Remove { // removed wins
		if path == fieldDistinctID || path == fieldUUID {
			return nil, fmt.Errorf("delivery.redact.remove: %s cannot be removed, because order and deduplication need it; name it in hash", path)
		}
		r.hashed[path] = false
	}
	for path, hashed := range r.hashed {
		if path == "" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") {
			return nil, fmt.Errorf("delivery.redact: %q is not the path of a property: write a name, or names with dots between them, such as $set.email", path)
		}
		if strings.Contains(path, ".") {
			r.nested = append(r.nested, rule{path, hashed})
		}
	}
	if r.hashed[fieldDistinctID] {
		r.aliases = map[string]bool{"$create_alias": true, "$merge_dangerously": true}
	}
	return r, nil
}

// holdsProperties reports whether a property holds properties of a person or a group.
func holdsProperties(name string) bool {
	return name == "$set" || name == "$set_once" || name == "$group_set"
}

// redact returns the redacted properties of an event. It does not change its argument.
func (r *redactor) redact(ev *sdk.Event) json.RawMessage {
	if len(ev.Properties) == 0 {
		return ev.Properties
	}
	out := make([]byte, 0, len(ev.Properties)+64)
	if r.aliases[ev.Name] {
		if _, listed := r.hashed["alias"]; !listed {
			return r.appendObject(out, ev.Properties, level{top: true, root: true, rules: []rule{{"alias", true}}})
		}
	}
	return r.appendObject(out, ev.Properties, level{top: true, root: true})
}

// redactsIDs reports whether ids changes anything.
func (r *redactor) redactsIDs() bool { return r.hashed[fieldDistinctID] || r.hashed[fieldUUID] }

// ids returns the event with its ids hashed where the configuration names them.
func (r *redactor) ids(ev sdk.Event) sdk.Event {
	if r.hashed[fieldDistinctID] {
		ev.DistinctID = hex.EncodeToString(r.sum([]byte(ev.DistinctID)))
	}
	if r.hashed[fieldUUID] {
		var id uuid.UUID
		copy(id[:], r.sum([]byte(ev.UUID)))
		id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: a hash of an own kind
		ev.UUID = id.String()
	}
	return ev
}

// level is how the members of an object are redacted.
type level struct {
	top   bool   // the properties of the event
	root  bool   // the paths of the configuration begin here
	rules []rule // further paths that begin here
}

// find returns whether a member is redacted and how, and the rules below it.
func (r *redactor) find(at level, key string) (listed, hashed bool, below []rule) {
	if at.root {
		hashed, listed = r.hashed[key]
		below = appendBelow(below, r.nested, key)
	}
	for _, rule := range at.rules {
		if rule.path == key {
			hashed = rule.hashed && (hashed || !listed)
			listed = true
		}
	}
	return listed, hashed, appendBelow(below, at.rules, key)
}

// appendBelow appends what is left of the rules whose path begins with key.
func appendBelow(out, rules []rule, key string) []rule {
	for _, rule := range rules {
		if rest, ok := strings.CutPrefix(rule.path, key); ok && len(rest) > 1 && rest[0] == '.' {
			rule.path = rest[1:]
			out = append(out, rule)
		}
	}
	return out
}

func (r *redactor) appendObject(out, object []byte, at level) []byte {
	out = append(out, '{')
	start := len(out)
	eachMember(object, func(name jsontext.String, value []byte) {
		var buf [64]byte
		key := string(name.Resolve(buf[:0]))
		listed, hashed, below := r.find(at, key)
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
		case at.top && key == "$unset" && len(value) > 0 && value[0] == '[':
			out = r.appendNames(out, value)
		default:
			out = r.appendValue(out, value, level{root: at.top && holdsProperties(key), rules: below})
		}
	})
	return append(out, '}')
}

// appendValue appends a value with the members of its objects redacted. The elements of a
// list have the place of the list.
func (r *redactor) appendValue(out, value []byte, at level) []byte {
	if len(value) == 0 || !at.root && len(at.rules) == 0 {
		return append(out, value...)
	}
	switch value[0] {
	case '{':
		return r.appendObject(out, value, at)
	case '[':
		var items []json.RawMessage
		if len(at.rules) == 0 || json.Unmarshal(value, &items) != nil {
			return append(out, value...)
		}
		out = append(out, '[')
		for i, item := range items {
			if i > 0 {
				out = append(out, ',')
			}
			out = r.appendValue(out, item, at)
		}
		return append(out, ']')
	}
	return append(out, value...)
}

// appendNames appends a list of property names without the redacted ones.
func (r *redactor) appendNames(out, list []byte) []byte {
	var names []json.RawMessage
	if json.Unmarshal(list, &names) != nil {
		return append(out, "[]"...)
	}
	names = slices.DeleteFunc(names, func(raw json.RawMessage) bool {
		var name string
		if json.Unmarshal(raw, &name) != nil {
			return false
		}
		_, listed := r.hashed[name]
		return listed
	})
	out = append(out, '[')
	for i, raw := range names {
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
	text := value
	var s string
	if json.Unmarshal(value, &s) == nil {
		text = []byte(s)
	}
	out = append(out, '"')
	out = hex.AppendEncode(out, r.sum(text))
	return append(out, '"')
}

// sum returns the hash of a text, keyed if there is a key.
func (r *redactor) sum(text []byte) []byte {
	var h hash.Hash
	if len(r.key) > 0 {
		h = hmac.New(sha256.New, r.key)
	} else {
		h = sha256.New()
	}
	h.Write(text)
	return h.Sum(nil)
}
