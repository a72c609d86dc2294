package event

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/jsontext"
)

// member is a member of an object in the source.
type member struct {
	name       jsontext.String
	raw        []byte // from the opening quote of the name to the end of the value
	superseded bool   // by a later member of the same name
}

// preparePrefix prepares the properties that each event of a record gets unless it
// has them: $ip, $sent_at and those of the location.
func (d *Decoder) preparePrefix(rec *Record) {
	d.ipPrefix, d.sentAtPrefix = d.ipPrefix[:0], d.sentAtPrefix[:0]
	d.location, d.locationPrefix = rec.Location, location.AppendMembers(d.locationPrefix[:0], rec.Location, nil)
	if rec.ClientIP.IsValid() && !rec.Anonymise {
		d.ipPrefix = append(d.ipPrefix, `"$ip":"`...)
		d.ipPrefix = append(rec.ClientIP.AppendTo(d.ipPrefix), `",`...)
	}
	if at, ok := ParseTime(rec.SentAt); ok && at.Year() >= 0 && at.Year() <= 9999 {
		d.sentAtPrefix = append(d.sentAtPrefix, `"$sent_at":"`...)
		d.sentAtPrefix = append(at.AppendFormat(d.sentAtPrefix, "2006-01-02T15:04:05.000000Z"), `",`...)
	}
}

// rewriteProperties returns the properties without those in out. Most events keep
// theirs byte for byte behind the prefix; others are rewritten, member by
// member.
func (d *Decoder) rewriteProperties(ev *item, p *properties, out uint32) json.RawMessage {
	start := len(d.buf)
	d.buf = append(d.buf, '{')
	if p.val[propIP] == nil && out&(1<<propIP) == 0 {
		if p.val[propCaptureInternal] != nil && len(d.ipPrefix) > 0 {
			d.buf = append(d.buf, `"$ip":"127.0.0.1",`...)
		} else {
			d.buf = append(d.buf, d.ipPrefix...)
		}
	}
	if p.val[propSentAt] == nil {
		d.buf = append(d.buf, d.sentAtPrefix...)
	}
	if len(d.locationPrefix) > 0 && p.wantsLocation() {
		d.addLocation(p)
	}
	out |= d.addPersonUpdates(ev, p, out)
	out |= d.addPromoted()
	if p.maybeDuplicate {
		d.confirmDuplicates(p)
	}
	switch {
	case p.count == 0:
	case p.dirty || p.maybeDuplicate || p.containsAny(out):
		d.copyMembers(p, out)
	case len(d.buf) == start+1:
		d.buf = d.buf[:start]
		return json.RawMessage(p.raw)
	default:
		d.buf = append(d.buf, p.raw[1:]...)
		return json.RawMessage(d.buf[start:len(d.buf):len(d.buf)])
	}
	d.closeObject()
	return json.RawMessage(d.buf[start:len(d.buf):len(d.buf)])
}

// wantsLocation reports whether the location of the client's address is that of
// the event: the client names no other address and does not turn it off.
func (p *properties) wantsLocation() bool {
	return p.val[propIP] == nil && p.val[propCaptureInternal] == nil && !IsTrue(p.val[propGeoipDisable])
}

// IsTrue reports whether a value turns an option on: any but null, false, 0, and
// the strings false and "".
func IsTrue(raw []byte) bool {
	return !IsNull(raw) && string(raw) != "false" && string(raw) != "0" && string(raw) != `""` && string(raw) != `"false"`
}

// addLocation writes the properties of the location, except those that the client
// has sent.
func (d *Decoder) addLocation(p *properties) {
	if !p.located {
		d.buf = append(d.buf, d.locationPrefix...)
		return
	}
	d.members = d.members[:0]
	d.collectMembers(p.raw)
	var buf [48]byte
	d.buf = location.AppendMembers(d.buf, d.location, func(name string) bool {
		return slices.ContainsFunc(d.members, func(m member) bool { return string(m.name.Resolve(buf[:])) == name })
	})
}

// confirmDuplicates checks whether a name occurs twice. If none does, the seed of
// the filter changes, because later events may have the same names.
func (d *Decoder) confirmDuplicates(p *properties) {
	d.members = d.members[:0]
	d.collectMembers(p.raw)
	if p.maybeDuplicate = d.markSuperseded(d.members); !p.maybeDuplicate {
		p.seed = maphash.MakeSeed()
	}
}

// closeObject ends an object whose members were each written with a comma.
func (d *Decoder) closeObject() {
	if last := len(d.buf) - 1; d.buf[last] == ',' {
		d.buf[last] = '}'
		return
	}
	d.buf = append(d.buf, '}')
}

// containsAny reports whether the object has one of the properties in out.
func (p *properties) containsAny(out uint32) bool {
	for id := range p.val {
		if out&(1<<id) != 0 && p.val[id] != nil {
			return true
		}
	}
	return false
}

// addPersonUpdates writes $set, $set_once and $unset from beside the properties,
// merged over those inside, and returns the properties that they replace.
func (d *Decoder) addPersonUpdates(ev *item, p *properties, out uint32) (replaced uint32) {
	for _, m := range [...]struct {
		id   int
		name string
		top  []byte
	}{{propSet, `"$set":`, ev.set}, {propSetOnce, `"$set_once":`, ev.setOnce}} {
		if !IsObject(m.top) || out&(1<<m.id) != 0 {
			continue
		}
		d.buf = append(d.buf, m.name...)
		d.mergeObjects(p.val[m.id], m.top)
		d.buf = append(d.buf, ',')
		replaced |= 1 << m.id
	}
	if ev.unset != nil && IsNull(p.val[propUnset]) && out&(1<<propUnset) == 0 {
		d.buf = append(d.buf, `"$unset":`...)
		d.buf = append(jsontext.AppendClean(d.buf, ev.unset), ',')
		replaced |= 1 << propUnset
	}
	return replaced
}

// mergeObjects writes the members of both objects. Those of top take precedence.
func (d *Decoder) mergeObjects(base, top []byte) {
	d.members = d.members[:0]
	if IsObject(base) {
		d.collectMembers(base)
	}
	d.collectMembers(top)
	d.markSuperseded(d.members)
	d.buf = append(d.buf, '{')
	for i := range d.members {
		if !d.members[i].superseded {
			d.buf = append(jsontext.AppendClean(d.buf, d.members[i].raw), ',')
		}
	}
	d.closeObject()
}

// copyMembers writes the properties one by one, without those in out. If a name
// occurs twice it writes the last.
func (d *Decoder) copyMembers(p *properties, out uint32) {
	d.members = d.members[:0]
	d.collectMembers(p.raw)
	if p.maybeDuplicate {
		d.markSuperseded(d.members)
	}
	var buf [48]byte
	for i := range d.members {
		m := &d.members[i]
		known := knownProperty(m.name.Resolve(buf[:]))
		if m.superseded || (known != propOther && out&(1<<known) != 0) {
			continue
		}
		if p.dirty {
			d.buf = jsontext.AppendClean(d.buf, m.raw)
		} else {
			d.buf = append(d.buf, m.raw...)
		}
		d.buf = append(d.buf, ',')
	}
}

// collectMembers appends the members of a valid object.
func (d *Decoder) collectMembers(object []byte) {
	s := &d.inner
	s.Reset(object)
	s.Peek()
	s.Open()
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		v := s.Value()
		if s.Bad {
			return
		}
		start := s.Pos - len(v)
		// Back over white space and the colon to the closing quote of the name.
		d.members = append(d.members, member{name: name, raw: object[nameStart(object, start, name):s.Pos]})
	}
}

// nameStart returns the offset of the opening quote of the name of the value
// that starts at value.
func nameStart(object []byte, value int, name jsontext.String) int {
	i := value
	for object[i-1] != '"' {
		i--
	}
	return i - len(name.Raw) - 2
}

// markSuperseded marks the members that have a later one of the same name, and
// reports whether there are any.
func (d *Decoder) markSuperseded(ms []member) (found bool) {
	if len(ms) > 32 {
		return d.markSupersededMany(ms)
	}
	for i := range ms {
		for j := i + 1; j < len(ms); j++ {
			if ms[i].name.Equal(ms[j].name) {
				ms[i].superseded, found = true, true
				break
			}
		}
	}
	return found
}

func (d *Decoder) markSupersededMany(ms []member) (found bool) {
	if d.last == nil {
		d.last = make(map[string]int)
	}
	defer clear(d.last) // its keys share memory with the record
	for i := range ms {
		key := ms[i].name.Resolve(nil)
		name := unsafe.String(unsafe.SliceData(key), len(key))
		if earlier, ok := d.last[name]; ok {
			ms[earlier].superseded, found = true, true
		}
		d.last[name] = i
	}
	return found
}
