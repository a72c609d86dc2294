package stage

import (
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/persons/properties"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// mode limits what an event may do to persons.
type mode uint8

const (
	full       mode = iota // creates and updates its person
	frozen                 // creates its person, does not update it
	personless             // $process_person_profile false: neither
)

// copied is an event property that is copied to the person.
type copied struct {
	rule *copyRule
	val  string
}

// parsedEvent is the part of an event that concerns persons and groups,
// one field for each property that the stage reads.
type parsedEvent struct {
	ev   *sdk.Event
	mode mode

	set, setOnce, unset string // JSON texts, "" if missing
	copied              []copied
	located             bool // copied holds a location
	personal            bool // the event is about the person: every change is written

	merge     bool   // the person of other becomes this person
	dangerous bool   // even if other is identified
	other     string // the other distinct id

	groups              string // $groups
	groupIdentify       bool
	groupType, groupKey string
	groupSet            string

	addedProperties string // members added to the stored event: JSON text, each after a comma
	person          *person
}

// Limits of texts that become keys of rows, in characters.
const (
	maxDistinctID = 200
	maxGroupKey   = 400
)

// parse reads ev and returns a warning or nil. Decoding has rejected events
// that are invalid as a whole; here invalid parts have no effect.
func (f *parsedEvent) parse(ev *sdk.Event) *Warning {
	*f = parsedEvent{ev: ev, copied: f.copied[:0]}
	f.classify()
	raw := rawProperties{event: f}
	raw.scan(string(ev.Properties))
	f.resolve(&raw)
	if f.mode == frozen && raw.hasSet {
		w := f.warn(WarnUpdateIgnored, nil)
		return &w
	}
	return nil
}

// classify sets the fields that depend on the name of the event.
func (f *parsedEvent) classify() {
	switch f.ev.Name {
	case "$identify", "$create_alias", "$merge_dangerously", "$set":
		f.personal = true
	case "$exception", "$$heatmap":
		f.mode = frozen
	case "$groupidentify":
		f.groupIdentify = true
	}
}

// rawProperties are the properties whose meaning depends on others.
type rawProperties struct {
	event                        *parsedEvent
	profile, lib                 string
	anon, alias                  string
	groupType, groupKey          string
	osName                       string
	hasSet, sawOS, skipAutomatic bool
	noLocation                   bool // $geoip_disable
}

func (r *rawProperties) scan(raw string) {
	f := r.event
	r.skipAutomatic = f.ev.Name == "$snapshot" || f.ev.Name == "$performance_event"
	c, _ := jsontext.OpenObject(raw)
	for c.Next() {
		switch c.Key {
		case "$set":
			f.set, r.hasSet = c.Value, true
		case "$set_once":
			f.setOnce, r.hasSet = c.Value, true
		case "$unset":
			f.unset, r.hasSet = c.Value, true
		case "$process_person_profile":
			r.profile = c.Value
		case "$anon_distinct_id":
			r.anon = c.Value
		case "alias":
			r.alias = c.Value
		case "$groups":
			f.groups = c.Value
		case "$group_type":
			r.groupType = c.Value
		case "$group_key":
			r.groupKey = c.Value
		case "$group_set":
			f.groupSet = c.Value
		case "$lib":
			r.lib = c.Value
		case "$os_name":
			r.osName = c.Value
		case location.Disable:
			r.noLocation = properties.Truthy(c.Value)
		default:
			r.copyAutomatic(c.Key, c.Value)
		}
	}
}

func (r *rawProperties) copyAutomatic(key, val string) {
	a := copyRules[key]
	if a == nil || r.skipAutomatic || val == "null" {
		return
	}
	r.sawOS = r.sawOS || key == "$os"
	r.event.located = r.event.located || a.location
	r.event.copied = append(r.event.copied, copied{a, val})
}

// resolve derives the effect of the event from its raw properties.
func (f *parsedEvent) resolve(r *rawProperties) {
	if r.profile == "false" {
		f.mode, f.groupIdentify = personless, false
		f.set, f.setOnce, f.unset, f.groups, f.copied, f.located = "", "", "", "", f.copied[:0], false
		return
	}
	if r.osName != "" && r.osName != "null" && !r.sawOS && !r.skipAutomatic {
		f.copied = append(f.copied, copied{copyRules["$os"], r.osName})
	}
	if serverLibs[properties.Text(r.lib)] {
		f.dropCopied(func(c *copyRule) bool { return c.client })
	}
	if f.located && r.noLocation {
		f.located = false
		f.dropCopied(func(c *copyRule) bool { return c.location })
	}
	f.resolveGroup(r)
	f.resolveMerge(r)
}

// dropCopied removes the copied properties whose rules drop accepts.
func (f *parsedEvent) dropCopied(drop func(*copyRule) bool) {
	kept := f.copied[:0]
	for _, c := range f.copied {
		if !drop(c.rule) {
			kept = append(kept, c)
		}
	}
	f.copied = kept
}

// resolveGroup reads a $groupidentify, which does not update its person.
func (f *parsedEvent) resolveGroup(r *rawProperties) {
	if !f.groupIdentify {
		return
	}
	f.set, f.setOnce, f.unset = "", "", ""
	f.groupType, f.groupKey = groupText(r.groupType), groupText(r.groupKey)
	f.groupIdentify = f.groupType != "" && f.groupKey != "" && utf8.RuneCountInString(f.groupKey) <= maxGroupKey
}

// groupText returns a group type or key as text, "" for none. Objects and lists are
// JSON in one spelling, as decide reads them.
func groupText(val string) string {
	switch {
	case val == "" || val == "null":
		return ""
	case val[0] == '{' || val[0] == '[':
		val = jsontext.Sorted([]byte(val))
	}
	return withoutNUL(properties.Text(val))
}

func (f *parsedEvent) resolveMerge(r *rawProperties) {
	var other string
	switch f.ev.Name {
	case "$identify":
		if r.anon == "" || r.anon == "null" {
			return
		}
		other = r.anon
	case "$create_alias", "$merge_dangerously":
		if !properties.Truthy(r.alias) {
			return
		}
		other = r.alias
		f.dangerous = f.ev.Name == "$merge_dangerously"
	default:
		return
	}
	f.other = text.TruncateChars(withoutNUL(properties.Text(other)), maxDistinctID)
	f.merge = f.other != f.ev.DistinctID
}
