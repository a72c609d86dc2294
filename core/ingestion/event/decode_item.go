package event

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/jsontext"
)

// item is one item of a request: the raw text of the known fields, nil for those
// that are missing or null.
type item struct {
	index      uint32
	members    int
	name       []byte
	distinctID []byte
	dollarID   []byte
	timestamp  []byte
	offset     []byte
	uuid       []byte
	set        []byte
	setOnce    []byte
	unset      []byte
	sessionID  []byte
	windowID   []byte
	options    []byte

	dropped    bool
	dropNotice Notice
	changes    []Notice
}

func (it *item) reset(index uint32) {
	*it = item{index: index, changes: it.changes[:0]}
}

func (it *item) kept() bool { return !it.dropped }

func (it *item) drop(kind string) *Notice {
	it.dropped = true
	it.dropNotice = Notice{Kind: kind, Dropped: true}
	return &it.dropNotice
}

func (it *item) addChange(kind string) *Notice {
	it.changes = append(it.changes, Notice{Kind: kind})
	return &it.changes[len(it.changes)-1]
}

func (n *Notice) detail(name string, value any) *Notice {
	if n.Detail == nil {
		n.Detail = make(map[string]any, 4)
	}
	n.Detail[name] = value
	return n
}

// readFields reads the object at the cursor. If a name occurs twice the last
// value counts.
func (it *item) readFields(s *jsontext.Scanner, p *properties) {
	p.reset()
	s.Open()
	var buf [32]byte
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		it.members++
		field := name.Resolve(buf[:])
		if string(field) == "properties" {
			p.readObject(s)
			continue
		}
		v := s.Value()
		if IsNull(v) {
			v = nil
		}
		switch string(field) {
		case "event":
			it.name = v
		case "distinct_id":
			it.distinctID = v
		case "$distinct_id":
			it.dollarID = v
		case "timestamp":
			it.timestamp = v
		case "offset":
			it.offset = v
		case "uuid":
			it.uuid = v
		case "$set":
			it.set = v
		case "$set_once":
			it.setOnce = v
		case "$unset":
			it.unset = v
		case "session_id":
			it.sessionID = v
		case "window_id":
			it.windowID = v
		case "options":
			it.options = v
		}
	}
	if it.members == 0 && !s.Bad {
		it.drop(KindEmptyEvent)
	}
}

// eventName returns the name of the event, or "".
func (d *Decoder) eventName(rec *Record, ev *item) string {
	if ev.name == nil || string(ev.name) == `""` {
		return rec.DefaultName
	}
	if known, ok := d.names[string(ev.name)]; ok {
		return known
	}
	name := PlainText(ev.name)
	if cut := FirstChars(name, MaxChars); len(cut) < len(name) {
		ev.addChange(KindNameTooLong).detail("length", utf8.RuneCountInString(name))
		return cut
	}
	if len(ev.name) <= 64 {
		if len(d.names) > 1000 {
			clear(d.names)
		}
		d.names[string(ev.name)] = name
	}
	return name
}

// distinctID returns the distinct id, or "".
func (d *Decoder) distinctID(ev *item, p *properties) string {
	id, shared := findDistinctID(ev, p)
	if shared {
		id = strings.Clone(id)
	}
	if cut := FirstChars(id, MaxChars); len(cut) < len(id) {
		ev.addChange(KindDistinctIDTooLong).detail("length", utf8.RuneCountInString(id))
		return cut
	}
	if id == cookielessID {
		ev.addChange(KindCookieless)
	}
	return id
}

// findDistinctID returns the distinct id in its full length, or "". Fields beside the
// properties take precedence over those inside. A shared text shares memory with the
// item.
func findDistinctID(ev *item, p *properties) (id string, shared bool) {
	for _, raw := range [...][]byte{ev.distinctID, ev.dollarID, p.val[propDistinctID], p.val[propDollarDistinctID]} {
		if raw == nil {
			continue
		}
		if id, shared = plainText(raw); !isBlank(id) {
			return id, shared
		}
	}
	return "", false
}

// cookielessID is the distinct id of all visitors whose browser keeps no id.
const cookielessID = "$posthog_cookieless"

// PlainText returns a JSON value as text: an unescaped string, the digits of a
// number, true or false, the compact JSON of a container with sorted names, and ""
// for null, NaN and the infinities.
func PlainText(raw []byte) string {
	text, shared := plainText(raw)
	if shared {
		return strings.Clone(text)
	}
	return text
}

// plainText is PlainText without a copy where possible: a shared text shares memory
// with raw.
func plainText(raw []byte) (text string, shared bool) {
	switch raw[0] {
	case '"':
		t := jsontext.String{Raw: raw[1 : len(raw)-1]}
		if bytes.IndexByte(t.Raw, '\\') < 0 && bytes.IndexByte(t.Raw, 0) < 0 && utf8.Valid(t.Raw) {
			return jsontext.View(t.Raw), true
		}
		return string(t.Append(make([]byte, 0, len(t.Raw)))), false
	case '{', '[':
		return jsontext.Sorted(jsontext.AppendClean(nil, raw)), false
	case 'n', 'N', 'I':
		return "", false
	case '-':
		if raw[1] == 'I' {
			return "", false
		}
	}
	return jsontext.View(raw), true
}

// FirstChars returns at most the first n characters of s.
func FirstChars(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func isBlank(s string) bool {
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r', '\v', '\f', 0x85, 0xa0:
		default:
			return false
		}
	}
	return true
}

// numberOf returns the number of a value, which may be a string; 0 for others.
func numberOf(raw []byte) float64 {
	if raw == nil {
		return 0
	}
	f, err := strconv.ParseFloat(PlainText(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

// timestampText returns a timestamp as text. bad is true for a value that is
// neither a string nor a number.
func timestampText(raw []byte) (s string, bad bool) {
	switch {
	case raw == nil:
		return "", false
	case raw[0] == '"' || raw[0] == '-' || raw[0]-'0' < 10:
		return PlainText(raw), false
	}
	return string(raw[:min(len(raw), 200)]), true
}
