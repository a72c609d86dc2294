package event

import (
	"encoding/json"
	"github.com/guidonhq/guidon/core/jsontext"
	"hash/maphash"
	"unsafe"
)

// member is one name and value of an object, as they stand in the source.
type member struct {
	name jsontext.String
	raw  []byte // from the opening quote of the name to the end of the value
	gone bool   // a later member has the same name
}

// preface prepares what goes in front of the properties of every event of a
// record, unless the event brings its own: the client's address and its clock.
func (d *Decoder) preface(rec *Record) {
	d.address, d.clock = d.address[:0], d.clock[:0]
	if rec.ClientIP.IsValid() && !rec.Anonymise {
		d.address = append(d.address, `"$ip":"`...)
		d.address = append(rec.ClientIP.AppendTo(d.address), `",`...)
	}
	if at, ok := ParseTime(rec.SentAt); ok && at.Year() >= 0 && at.Year() <= 9999 {
		d.clock = append(d.clock, `"$sent_at":"`...)
		d.clock = append(at.AppendFormat(d.clock, "2006-01-02T15:04:05.000000Z"), `",`...)
	}
}

// rewrite returns the properties to keep, without those in out. Most events
// keep theirs byte for byte behind the preface; the others are put together
// anew, member by member.
func (d *Decoder) rewrite(ev *item, p *properties, out uint32) json.RawMessage {
	start := len(d.arena)
	d.arena = append(d.arena, '{')
	if p.val[propIP] == nil {
		if p.val[propCaptureInternal] != nil && len(d.address) > 0 {
			d.arena = append(d.arena, `"$ip":"127.0.0.1",`...)
		} else {
			d.arena = append(d.arena, d.address...)
		}
	}
	if p.val[propSentAt] == nil {
		d.arena = append(d.arena, d.clock...)
	}
	out |= d.addSets(ev, p, out)
	out |= d.addExtras()
	if p.twice {
		d.checkTwice(p)
	}
	switch {
	case p.count == 0:
	case p.dirty || p.twice || p.holds(out):
		d.copyMembers(p, out)
	case len(d.arena) == start+1:
		d.arena = d.arena[:start]
		return json.RawMessage(p.raw)
	default:
		d.arena = append(d.arena, p.raw[1:]...)
		return json.RawMessage(d.arena[start:len(d.arena):len(d.arena)])
	}
	d.closeObject()
	return json.RawMessage(d.arena[start:len(d.arena):len(d.arena)])
}

// checkTwice finds out whether a name really comes more than once. If not, the
// next events are looked at with another filter: they may have the same names.
func (d *Decoder) checkTwice(p *properties) {
	d.members = d.members[:0]
	d.collect(p.raw)
	if p.twice = d.supersede(d.members); !p.twice {
		p.seed = maphash.MakeSeed()
	}
}

// closeObject ends an object whose members were each written with a comma.
func (d *Decoder) closeObject() {
	if last := len(d.arena) - 1; d.arena[last] == ',' {
		d.arena[last] = '}'
		return
	}
	d.arena = append(d.arena, '}')
}

// holds reports whether any of the properties in out is there.
func (p *properties) holds(out uint32) bool {
	for id := range p.val {
		if out&(1<<id) != 0 && p.val[id] != nil {
			return true
		}
	}
	return false
}

// addSets writes $set, $set_once and $unset of the event's own level, merged
// over those in its properties, and returns which of the latter they replace.
func (d *Decoder) addSets(ev *item, p *properties, out uint32) (replaced uint32) {
	for _, m := range [...]struct {
		id   int
		name string
		top  []byte
	}{{propSet, `"$set":`, ev.set}, {propSetOnce, `"$set_once":`, ev.setOnce}} {
		if !IsObject(m.top) || out&(1<<m.id) != 0 {
			continue
		}
		d.arena = append(d.arena, m.name...)
		d.merge(p.val[m.id], m.top)
		d.arena = append(d.arena, ',')
		replaced |= 1 << m.id
	}
	if ev.unset != nil && IsNull(p.val[propUnset]) && out&(1<<propUnset) == 0 {
		d.arena = append(d.arena, `"$unset":`...)
		d.arena = append(jsontext.AppendClean(d.arena, ev.unset), ',')
		replaced |= 1 << propUnset
	}
	return replaced
}

// merge writes the members of both objects; where a name is in both, top's.
func (d *Decoder) merge(base, top []byte) {
	d.members = d.members[:0]
	if IsObject(base) {
		d.collect(base)
	}
	d.collect(top)
	d.supersede(d.members)
	d.arena = append(d.arena, '{')
	for i := range d.members {
		if !d.members[i].gone {
			d.arena = append(jsontext.AppendClean(d.arena, d.members[i].raw), ',')
		}
	}
	d.closeObject()
}

// copyMembers writes the properties one by one, without those in out, and of
// several of one name only the last.
func (d *Decoder) copyMembers(p *properties, out uint32) {
	d.members = d.members[:0]
	d.collect(p.raw)
	if p.twice {
		d.supersede(d.members)
	}
	var buf [48]byte
	for i := range d.members {
		m := &d.members[i]
		known := knownProperty(m.name.Resolve(buf[:]))
		if m.gone || (known != propOther && out&(1<<known) != 0) {
			continue
		}
		if p.dirty {
			d.arena = jsontext.AppendClean(d.arena, m.raw)
		} else {
			d.arena = append(d.arena, m.raw...)
		}
		d.arena = append(d.arena, ',')
	}
}

// collect appends the members of an object that has been scanned before.
func (d *Decoder) collect(object []byte) {
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
		// The name starts where its quotes do: walk back over the white
		// space and the colon to the end of the name, then over the name.
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

// supersede marks the members that are followed by another of the same name,
// and reports whether there are any.
func (d *Decoder) supersede(ms []member) (found bool) {
	if len(ms) > 32 {
		return d.supersedeMany(ms)
	}
	for i := range ms {
		for j := i + 1; j < len(ms); j++ {
			if ms[i].name.Equal(ms[j].name) {
				ms[i].gone, found = true, true
				break
			}
		}
	}
	return found
}

func (d *Decoder) supersedeMany(ms []member) (found bool) {
	if d.last == nil {
		d.last = make(map[string]int)
	}
	defer clear(d.last) // its keys are bytes of the record
	for i := range ms {
		key := ms[i].name.Resolve(nil)
		name := unsafe.String(unsafe.SliceData(key), len(key))
		if earlier, ok := d.last[name]; ok {
			ms[earlier].gone, found = true, true
		}
		d.last[name] = i
	}
	return found
}
