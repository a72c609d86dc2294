package persons

import (
	"slices"
	"strings"
)

// The limits of the stored properties of one person or group, in bytes.
const (
	maxProperties  = 655_360 // above it the object is trimmed
	trimProperties = 524_288 // down to this
)

// change is one property that an update wants to have a value.
type change struct {
	key, val string
	quiet    bool
}

// update is what one event wants of the properties of its person, in the order
// in which it is applied.
type update struct {
	once  []change // only where the person has no such property
	set   []change
	unset []string
}

func (u *update) reset() { u.once, u.set, u.unset = u.once[:0], u.set[:0], u.unset[:0] }

// read collects the update of an event. What the event says in $set and
// $set_once goes before what is copied from its properties.
func (u *update) read(f *fact) {
	u.reset()
	if f.mode != full {
		return
	}
	u.once = explicit(u.once, f.setOnce)
	u.set = explicit(u.set, f.set)
	once, set := len(u.once), len(u.set)
	for _, c := range f.copied {
		u.once = appendUnless(u.once, once, change{key: c.rule.initial, val: c.val})
		u.set = appendUnless(u.set, set, change{key: c.rule.name, val: c.val, quiet: c.rule.quiet})
	}
	if f.ev.Name == "survey shown" {
		at := `"` + f.ev.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
		u.set = appendUnless(u.set, set, change{key: "$survey_last_seen_date", val: at})
	}
	u.unset = appendNames(u.unset, f.unset)
}

// explicit appends the members of a JSON object; the last of a name wins.
func explicit(to []change, raw string) []change {
	if raw == "" {
		return to
	}
	o, _ := parseObject(raw)
	for _, m := range o.members {
		key := storable(m.key)
		to = append(to, change{key: key, val: storableValue(m.val), quiet: quietPlace(key)})
	}
	return to
}

// appendUnless appends c unless one of the first n changes is about its key.
func appendUnless(to []change, n int, c change) []change {
	for i := range to[:n] {
		if to[i].key == c.key {
			return to
		}
	}
	return append(to, c)
}

// appendNames appends the names in a JSON array of names, or of an object.
func appendNames(to []string, raw string) []string {
	if c, ok := openObject(raw); ok {
		for c.next() {
			to = append(to, c.key)
		}
		return to
	}
	c, _ := openArray(raw)
	for c.element() {
		if name, ok := unquote(c.val); ok {
			to = append(to, name)
		}
	}
	return to
}

// worthwhile tells what the update would do to o: anything at all, and
// anything that is worth a write of its own.
func (u *update) worthwhile(o *object) (changes, loud bool) {
	for i := range u.once {
		if !o.has(u.once[i].key) {
			return true, true
		}
	}
	for i := range u.set {
		if o.get(u.set[i].key) != u.set[i].val {
			changes = true
			if !u.set[i].quiet {
				return true, true
			}
		}
	}
	for _, key := range u.unset {
		if o.has(key) {
			return true, true
		}
	}
	return changes, false
}

// apply does the update.
func (u *update) apply(o *object) {
	for i := range u.once {
		if !o.has(u.once[i].key) {
			o.set(u.once[i].key, u.once[i].val)
		}
	}
	for i := range u.set {
		o.set(u.set[i].key, u.set[i].val)
	}
	if len(u.unset) > 0 {
		o.remove(u.unset...)
	}
}

// protected are the properties by which people recognise a person; trimming
// leaves them alone.
var protected = set(`email Email name Name username Username UserName $creator_event_uuid`)

// trim takes properties away, in the order of their names, until o is small
// enough, and returns their names; false when that cannot be done.
func trim(o *object) ([]string, bool) {
	sizes := make(map[string]int, len(o.members))
	names := make([]string, 0, len(o.members))
	for _, m := range o.members {
		if !protected[m.key] {
			names = append(names, m.key)
			sizes[m.key] = len(m.key) + len(m.val) + 4
		}
	}
	slices.Sort(names)
	size, n := o.size(), 0
	for n < len(names) && size > trimProperties {
		size -= sizes[names[n]]
		n++
	}
	o.remove(names[:n]...)
	return names[:n], size <= trimProperties
}

// storable is s without NUL, which no text of a database holds.
func storable(s string) string {
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// storableValue is storable for a JSON text, where NUL stands as an escape.
func storableValue(val string) string {
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
