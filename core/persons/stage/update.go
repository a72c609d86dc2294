package stage

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/persons/properties"
)

// The limits of the stored properties of one person or group, in bytes.
const (
	maxProperties  = 655_360 // above it the object is trimmed
	trimProperties = 524_288 // down to this
)

// change is a new value of one property.
type change struct {
	key, val      string
	insignificant bool // does not cause a write of its own
}

// update is the property changes of one event, in the order of application.
type update struct {
	once  []change // only if the person has no such property
	set   []change
	unset []string
	stale []string // properties of an old location that the new one does not have
}

func (u *update) reset() {
	u.once, u.set, u.unset, u.stale = u.once[:0], u.set[:0], u.unset[:0], u.stale[:0]
}

// collect reads the update of an event. $set and $set_once win over properties
// that are copied from the event.
func (u *update) collect(f *parsedEvent) {
	u.reset()
	if f.mode != full {
		return
	}
	u.once = appendMembersOf(u.once, f.setOnce)
	u.set = appendMembersOf(u.set, f.set)
	once, set := len(u.once), len(u.set)
	for _, c := range f.copied {
		u.once = appendIfNew(u.once, once, change{key: c.rule.initial, val: c.val})
		u.set = appendIfNew(u.set, set, change{key: c.rule.name, val: c.val, insignificant: c.rule.insignificant})
	}
	if f.ev.Name == "survey shown" {
		at := `"` + f.ev.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
		u.set = appendIfNew(u.set, set, change{key: "$survey_last_seen_date", val: at})
	}
	u.unset = appendNames(u.unset, f.unset)
}

// appendMembersOf appends the members of a JSON object; for a repeated name the
// last value counts.
func appendMembersOf(to []change, raw string) []change {
	if raw == "" {
		return to
	}
	o, _ := properties.Parse(raw)
	for _, m := range o.Members {
		key := withoutNUL(m.Key)
		to = append(to, change{key: key, val: withoutNULEscapes(m.Value), insignificant: isInsignificantKey(key)})
	}
	return to
}

// appendIfNew appends c unless one of the first n changes has its key.
func appendIfNew(to []change, n int, c change) []change {
	for i := range to[:n] {
		if to[i].key == c.key {
			return to
		}
	}
	return append(to, c)
}

// appendNames appends the names in a JSON array of names, or of an object.
func appendNames(to []string, raw string) []string {
	if c, ok := jsontext.OpenObject(raw); ok {
		for c.Next() {
			to = append(to, c.Key)
		}
		return to
	}
	c, _ := jsontext.OpenArray(raw)
	for c.Element() {
		if name, ok := jsontext.Unquote(c.Value); ok {
			to = append(to, name)
		}
	}
	return to
}

// effect reports whether the update changes o, and whether a change is
// significant: worth a write of its own.
func (u *update) effect(o *properties.Object) (changes, significant bool) {
	for i := range u.once {
		if !o.Has(u.once[i].key) {
			return true, true
		}
	}
	for i := range u.set {
		if o.Get(u.set[i].key) != u.set[i].val {
			changes = true
			if !u.set[i].insignificant {
				return true, true
			}
		}
	}
	for _, key := range u.unset {
		if o.Has(key) {
			return true, true
		}
	}
	for _, key := range u.stale {
		if changes = true; !isInsignificantKey(key) {
			return true, true
		}
	}
	return changes, false
}

// apply applies the update to o.
func (u *update) apply(o *properties.Object) {
	for i := range u.once {
		if !o.Has(u.once[i].key) {
			o.Set(u.once[i].key, u.once[i].val)
		}
	}
	for i := range u.set {
		o.Set(u.set[i].key, u.set[i].val)
	}
	if len(u.unset)+len(u.stale) > 0 {
		o.Remove(append(u.unset, u.stale...)...)
	}
}

// protected are the properties that identify a person to readers; trimming
// keeps them.
var protected = set(`email Email name Name username Username UserName $creator_event_uuid`)

// trim removes properties, in the order of their names, until o is below the
// limit, and returns their names; false if that is not possible.
func trim(o *properties.Object) ([]string, bool) {
	sizes := make(map[string]int, len(o.Members))
	names := make([]string, 0, len(o.Members))
	for _, m := range o.Members {
		if !protected[m.Key] {
			names = append(names, m.Key)
			sizes[m.Key] = len(m.Key) + len(m.Value) + 4
		}
	}
	slices.Sort(names)
	size, n := o.Size(), 0
	for n < len(names) && size > trimProperties {
		size -= sizes[names[n]]
		n++
	}
	o.Remove(names[:n]...)
	return names[:n], size <= trimProperties
}

// withoutNUL replaces NUL, which text columns do not accept.
func withoutNUL(s string) string {
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// withoutNULEscapes replaces the escapes of NUL in a JSON text.
func withoutNULEscapes(val string) string {
	const nul = `\u0000`
	if !strings.Contains(val, nul) {
		return val
	}
	var b strings.Builder
	for i := 0; i < len(val); i++ {
		switch {
		case strings.HasPrefix(val[i:], nul):
			b.WriteString(`\ufffd`)
			i += len(nul) - 1
		case val[i] == '\\' && i+1 < len(val):
			b.WriteString(val[i : i+2])
			i++
		default:
			b.WriteByte(val[i])
		}
	}
	return b.String()
}
