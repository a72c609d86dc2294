package eval

import (
	"slices"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/eval/schema"
	"github.com/guidonhq/guidon/core/match"
)

// subject is a person or a group, with its known properties.
type subject struct {
	id     string
	given  bool
	stored lookupState
	wanted bool // stored properties have to be read
	slots  []slot
	parser fastjson.Parser
}

func (s *subject) reset(id string, slots int) {
	s.id, s.given, s.stored, s.wanted = id, false, unread, false
	s.slots = resize(s.slots, slots)
}

// slot is one property of a subject.
type slot struct {
	value match.Value
	epoch uint32
	from  origin
}

// origin is the place a property comes from.
type origin uint8

const (
	fromRequest origin = iota
	fromStore
	fromIdentity // the distinct id or the group key itself
	fromAddress  // the location of the address of the request
)

// filling is the object whose properties are being copied into slots. visit is
// allocated once per pooled evaluation.
type filling struct {
	subject *subject
	schema  *schema.Schema
	from    origin
	visit   func(name []byte, v *fastjson.Value)
}

// SetAnonymousID sets the id from before login, for flags with experience
// continuity.
func (e *Evaluation) SetAnonymousID(id string) { e.stored.anonymousID = id }

// SetDeviceID sets the id of the person's device, for flags that bucket by device.
func (e *Evaluation) SetDeviceID(id string) { e.deviceID = id }

// BucketsByDevice reports whether an active flag buckets by device.
func (e *Evaluation) BucketsByDevice() bool { return e.set.byDevice }

// missesDevice reports whether a condition buckets by device and the request has
// none. Such a condition does not match with any rollout.
func (e *Evaluation) missesDevice(f *flag, subject int32) bool {
	return f.byDevice && subject == person && e.deviceID == ""
}

// SetGroup sets the group of a type that the person belongs to. Unknown types
// and empty keys are ignored.
func (e *Evaluation) SetGroup(typeName, key string) {
	at, ok := e.set.groupTypes[typeName]
	if !ok || key == "" {
		return
	}
	g := &e.groups[at]
	g.id, g.given = key, true
	e.setIdentity(g, &e.set.groups[at].schema, "$group_key", key)
}

// SetPersonProperties sets properties of the person that the request gives. The
// evaluation refers to o until Release.
func (e *Evaluation) SetPersonProperties(o *fastjson.Object) {
	e.fillProperties(&e.person, &e.set.people, fromRequest, o)
}

// ReadsLocation reports whether an active flag reads a property of the location of
// the person.
func (e *Evaluation) ReadsLocation() bool { return e.set.located }

// SetLocation sets properties of the person that derive from the address of the
// request. Those that the request gives win, unless they are null; stored ones do
// not. Call it after SetPersonProperties or SetRequest. The evaluation refers to o
// until Release.
func (e *Evaluation) SetLocation(o *fastjson.Object) {
	e.fillProperties(&e.person, &e.set.people, fromAddress, o)
}

// SetGroupProperties sets properties of the group of a type that the request
// gives. Unknown types are ignored.
func (e *Evaluation) SetGroupProperties(typeName string, o *fastjson.Object) {
	if at, ok := e.set.groupTypes[typeName]; ok {
		e.fillProperties(&e.groups[at], &e.set.groups[at].schema, fromRequest, o)
	}
}

// SetRequest applies a request, except its selection of flags.
func (e *Evaluation) SetRequest(q *Request) {
	e.stored.anonymousID, e.deviceID = q.AnonymousID, q.DeviceID
	for name, key := range q.Groups {
		e.SetGroup(name, key)
	}
	e.fillJSON(&e.person, &e.set.people, fromRequest, q.PersonProperties)
	e.fillJSON(&e.person, &e.set.people, fromAddress, q.Location)
	for name, raw := range q.GroupProperties {
		if at, ok := e.set.groupTypes[name]; ok {
			e.fillJSON(&e.groups[at], &e.set.groups[at].schema, fromRequest, raw)
		}
	}
}

// setIdentity sets a property that equals the identifier of the subject.
func (e *Evaluation) setIdentity(s *subject, in *schema.Schema, name, value string) {
	if at, ok := in.Find(name); ok {
		s.slots[at] = slot{value: match.Text(value), epoch: e.epoch, from: fromIdentity}
	}
}

// fillProperties copies properties of a JSON object into the slots of a
// subject. Properties of the request replace existing ones, others only fill empty
// slots.
func (e *Evaluation) fillProperties(s *subject, in *schema.Schema, from origin, o *fastjson.Object) {
	if o == nil || in.Len() == 0 {
		return
	}
	e.filling.subject, e.filling.schema, e.filling.from = s, in, from
	o.Visit(e.filling.visit)
}

func (e *Evaluation) fillSlot(name []byte, v *fastjson.Value) {
	at, ok := e.filling.schema.Find(textView(name))
	if !ok {
		return
	}
	sl := &e.filling.subject.slots[at]
	if sl.epoch == e.epoch && e.filling.keeps(sl) {
		return
	}
	sl.epoch, sl.from = e.epoch, e.filling.from
	sl.value, e.arena = match.FromJSON(v, e.arena)
}

// keeps reports whether a slot keeps its value: stored properties replace none, a
// location replaces null.
func (f *filling) keeps(sl *slot) bool {
	switch f.from {
	case fromStore:
		return sl.from != fromStore
	case fromAddress:
		return sl.value.Kind() != match.Null
	default:
		return false
	}
}

// fillJSON sets properties from JSON text, and ignores text that is not an object. Each text gets a parser of its own, because slots refer to it.
func (e *Evaluation) fillJSON(s *subject, in *schema.Schema, from origin, raw []byte) {
	if len(raw) == 0 {
		return
	}
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return
	}
	if o, err := v.Object(); err == nil {
		e.fillProperties(s, in, from, o)
	}
}

// subject returns a subject by its place.
func (e *Evaluation) subject(at int32) *subject {
	if at >= 0 {
		return &e.groups[at]
	}
	return &e.person
}

// hasSubject reports whether the request has a subject of this kind.
func (e *Evaluation) hasSubject(at int32) bool {
	return at == person || at >= 0 && e.groups[at].given
}

// identifier returns the text that a flag hashes for a subject: False if the
// request has no such subject, waiting while a kept identifier is unread.
func (e *Evaluation) identifier(f *flag, at int32) (string, match.Result) {
	switch {
	case at >= 0:
		return e.groups[at].id, match.Of(e.groups[at].given)
	case at == unknownGroup:
		return "", match.False
	case f.byDevice:
		return e.deviceID, match.Of(e.deviceID != "")
	case !f.continuous:
		return e.person.id, match.True
	}
	switch e.stored.hashKeysState {
	case unread:
		e.stored.hashKeysWanted = e.stored.hashKeysWanted || !e.lookingAhead
		return "", waiting
	case unreadable:
		e.cause = CauseUnavailable
		return "", match.Unknown
	case read:
	}
	if key, ok := e.stored.hashKeys[f.key]; ok && key != "" {
		return key, match.True
	}
	if e.stored.anonymousID != "" {
		return e.stored.anonymousID, match.True
	}
	return e.person.id, match.True
}

// onList reports whether a static cohort lists the person.
func (e *Evaluation) onList(id int64) match.Result {
	switch e.stored.listsState {
	case unread:
		e.stored.listsWanted = e.stored.listsWanted || !e.lookingAhead
		return waiting
	case unreadable:
		e.cause = CauseUnavailable
		return match.Unknown
	case read:
	}
	return match.Of(slices.Contains(e.stored.lists, id))
}
