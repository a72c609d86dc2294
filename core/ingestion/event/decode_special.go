package event

import "unicode/utf8"

// maxGroupKey is how many characters a group key may have.
const maxGroupKey = 400

// special applies the rules that depend on what kind of event it is. It may
// drop the event; else it returns the properties the event does not keep.
func (d *Decoder) special(rec *Record, ev *item, p *properties, name string) (out uint32) {
	const personKeys = 1<<propSet | 1<<propSetOnce | 1<<propUnset
	if rec.Anonymise {
		out |= 1 << propIP
	}
	personless := d.personless(ev, p)
	if personless {
		out |= personKeys
	}
	switch name {
	case "$performance_event":
		ev.drop(KindPerformanceEvent)
	case "$$client_ingestion_warning":
		n := ev.drop(KindClientWarning)
		if v := p.val[propClientMessage]; v != nil {
			n.detail("message", FirstChars(PlainText(v), 1000))
		}
	case "$identify", "$create_alias", "$merge_dangerously":
		if personless {
			ev.drop(KindPersonlessIdentify)
		}
	case "$groupidentify":
		out |= personKeys
		d.group(ev, p, personless)
	}
	if out&personKeys == 0 {
		d.checkSets(ev, p)
	}
	return out
}

// personless reports whether the event asked for no person processing.
func (d *Decoder) personless(ev *item, p *properties) bool {
	v := p.val[propPersonSwitch]
	switch {
	case IsNull(v) || string(v) == "true":
		return false
	case string(v) == "false":
		return true
	}
	ev.change(KindInvalidPersonSwitch).detail("$process_person_profile", string(v[:min(len(v), 200)]))
	return false
}

// group drops a $groupidentify that cannot be applied.
func (d *Decoder) group(ev *item, p *properties, personless bool) {
	set := p.val[propGroupSet]
	switch {
	case personless:
		ev.drop(KindPersonlessIdentify)
	case !IsNull(set) && !IsObject(set):
		ev.drop(KindInvalidGroupSet)
	case p.val[propGroupKey] != nil:
		if n := utf8.RuneCountInString(PlainText(p.val[propGroupKey])); n > maxGroupKey {
			ev.drop(KindGroupKeyTooLong).detail("length", n).detail("limit", maxGroupKey)
		}
	}
}

// checkSets notes person updates that cannot be applied.
func (d *Decoder) checkSets(ev *item, p *properties) {
	for _, v := range [...]struct {
		field string
		raw   []byte
	}{
		{"$set", ev.set}, {"$set_once", ev.setOnce},
		{"properties.$set", p.val[propSet]}, {"properties.$set_once", p.val[propSetOnce]},
	} {
		if !IsNull(v.raw) && !IsObject(v.raw) {
			ev.change(KindInvalidSet).detail("field", v.field)
		}
	}
}
