package event

import "unicode/utf8"

// maxGroupKey bounds the characters of a group key.
const maxGroupKey = 400

// applyEventRules applies the rules for the name of the event and for person
// processing. It may drop the event; else it returns the properties to remove.
func (d *Decoder) applyEventRules(rec *Record, ev *item, p *properties, name string) (out uint32) {
	const personKeys = 1<<propSet | 1<<propSetOnce | 1<<propUnset
	if rec.Anonymise || IsTrue(p.val[propCookieless]) {
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
		d.checkGroup(ev, p, personless)
	}
	if out&personKeys == 0 {
		d.checkSets(ev, p)
	}
	return out
}

// personless reports whether the event turns person processing off.
func (d *Decoder) personless(ev *item, p *properties) bool {
	v := p.val[propPersonSwitch]
	switch {
	case IsNull(v) || string(v) == "true":
		return false
	case string(v) == "false":
		return true
	}
	ev.addChange(KindInvalidPersonSwitch).detail("$process_person_profile", string(v[:min(len(v), 200)]))
	return false
}

// checkGroup drops an invalid $groupidentify.
func (d *Decoder) checkGroup(ev *item, p *properties, personless bool) {
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

// checkSets adds notices for invalid person updates.
func (d *Decoder) checkSets(ev *item, p *properties) {
	for _, v := range [...]struct {
		field string
		raw   []byte
	}{
		{"$set", ev.set}, {"$set_once", ev.setOnce},
		{"properties.$set", p.val[propSet]}, {"properties.$set_once", p.val[propSetOnce]},
	} {
		if !IsNull(v.raw) && !IsObject(v.raw) {
			ev.addChange(KindInvalidSet).detail("field", v.field)
		}
	}
}
