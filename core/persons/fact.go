package persons

import (
	"unicode/utf8"

	"github.com/guidonhq/guidon/sdk"
)

// mode is what an event may do to persons.
type mode uint8

const (
	full        mode = iota // makes and updates its person
	frozen                  // makes its person, never updates it
	profileless             // $process_person_profile false: neither
)

// copied is an automatic property as an event gave it.
type copied struct {
	rule *automatic
	val  string
}

// fact is what one event means for persons and groups, read once.
type fact struct {
	ev   *sdk.Event
	mode mode

	set, setOnce, unset string // JSON texts, "" when absent
	copied              []copied
	personal            bool // an event about the person: every change is written

	merge     bool   // asks for the person of other to be this person
	dangerous bool   // even when other is identified
	other     string // the other distinct id

	groups              string // $groups
	groupIdentify       bool
	groupType, groupKey string
	groupSet            string

	bonus string // members that the stored event gains: JSON text, each after a comma
	who   *person
}

// The limits of the texts that become keys of rows.
const (
	maxID       = 200 // characters of a distinct id
	maxGroupKey = 400 // characters of a group key
)

// read takes ev apart and returns a warning or nil. What makes an event invalid
// as a whole was sorted out when it was decoded; here such an event merely has
// no effect.
func (f *fact) read(ev *sdk.Event) *Warning {
	*f = fact{ev: ev, copied: f.copied[:0]}
	f.classify()
	raw := facts{fact: f}
	raw.scan(string(ev.Properties))
	f.settle(&raw)
	if f.mode == frozen && raw.hasSet {
		w := f.warn(WarnUpdateIgnored, nil)
		return &w
	}
	return nil
}

// classify sets what follows from the name of the event.
func (f *fact) classify() {
	switch f.ev.Name {
	case "$identify", "$create_alias", "$merge_dangerously", "$set":
		f.personal = true
	case "$exception", "$$heatmap":
		f.mode = frozen
	case "$groupidentify":
		f.groupIdentify = true
	}
}

// facts is the raw material: properties whose meaning depends on others.
type facts struct {
	fact                 *fact
	profile, lib         string
	anon, alias          string
	groupType, groupKey  string
	osName               string
	hasSet, sawOS, quiet bool
}

func (r *facts) scan(properties string) {
	f := r.fact
	r.quiet = f.ev.Name == "$snapshot" || f.ev.Name == "$performance_event"
	c, _ := openObject(properties)
	for c.next() {
		switch c.key {
		case "$set":
			f.set, r.hasSet = c.val, true
		case "$set_once":
			f.setOnce, r.hasSet = c.val, true
		case "$unset":
			f.unset, r.hasSet = c.val, true
		case "$process_person_profile":
			r.profile = c.val
		case "$anon_distinct_id":
			r.anon = c.val
		case "alias":
			r.alias = c.val
		case "$groups":
			f.groups = c.val
		case "$group_type":
			r.groupType = c.val
		case "$group_key":
			r.groupKey = c.val
		case "$group_set":
			f.groupSet = c.val
		case "$lib":
			r.lib = c.val
		case "$os_name":
			r.osName = c.val
		default:
			r.automatic(c.key, c.val)
		}
	}
}

func (r *facts) automatic(key, val string) {
	a := automatics[key]
	if a == nil || r.quiet || val == "null" {
		return
	}
	r.sawOS = r.sawOS || key == "$os"
	r.fact.copied = append(r.fact.copied, copied{a, val})
}

// settle decides what the raw material adds up to.
func (f *fact) settle(r *facts) {
	if r.profile == "false" {
		f.mode, f.groupIdentify = profileless, false
		f.set, f.setOnce, f.unset, f.groups, f.copied = "", "", "", "", f.copied[:0]
		return
	}
	if r.osName != "" && r.osName != "null" && !r.sawOS && !r.quiet {
		f.copied = append(f.copied, copied{automatics["$os"], r.osName})
	}
	if serverLibs[scalar(r.lib)] {
		f.dropClient()
	}
	f.settleGroup(r)
	f.settleMerge(r)
}

// dropClient forgets what describes the machine the event was sent from.
func (f *fact) dropClient() {
	kept := f.copied[:0]
	for _, c := range f.copied {
		if !c.rule.client {
			kept = append(kept, c)
		}
	}
	f.copied = kept
}

// settleGroup reads a $groupidentify; its person updates do not count.
func (f *fact) settleGroup(r *facts) {
	if !f.groupIdentify {
		return
	}
	f.set, f.setOnce, f.unset = "", "", ""
	f.groupType, f.groupKey = groupText(r.groupType), groupText(r.groupKey)
	f.groupIdentify = f.groupType != "" && f.groupKey != "" && utf8.RuneCountInString(f.groupKey) <= maxGroupKey
}

// groupText is a group type or key as text; "" when there is none.
func groupText(val string) string {
	if val == "" || val == "null" {
		return ""
	}
	return storable(scalar(val))
}

func (f *fact) settleMerge(r *facts) {
	var other string
	switch f.ev.Name {
	case "$identify":
		if r.anon == "" || r.anon == "null" {
			return
		}
		other = r.anon
	case "$create_alias", "$merge_dangerously":
		if !truthy(r.alias) {
			return
		}
		other = r.alias
		f.dangerous = f.ev.Name == "$merge_dangerously"
	default:
		return
	}
	f.other = cut(storable(scalar(other)), maxID)
	f.merge = f.other != f.ev.DistinctID
}

// cut is the first n characters of s.
func cut(s string, n int) string {
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
