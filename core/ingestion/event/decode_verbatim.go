package event

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/jsontext"
)

// applyVerbatim applies the rules of the 2026 protocol. Its events carry options and
// session ids beside their properties; these become properties. It drops events
// that older protocols change.
func (d *Decoder) applyVerbatim(ev *item, p *properties) {
	d.promoted = d.promoted[:0]
	d.promote(p, propSessionID, `"$session_id":`, ev.sessionID)
	d.promote(p, propWindowID, `"$window_id":`, ev.windowID)
	if IsObject(ev.options) {
		d.promoteOptions(p, ev.options)
	}
	d.promoteMissing(p, propLib, `"$lib":`, d.library)
	d.promoteMissing(p, propLibVersion, `"$lib_version":`, d.libraryVersion)
	if ev.name != nil && utf8.RuneCountInString(PlainText(ev.name)) > MaxChars {
		ev.drop(KindNameTooLong)
		return
	}
	if ev.distinctID != nil && len(PlainText(ev.distinctID)) > MaxChars {
		ev.drop(KindDistinctIDTooLong)
		return
	}
	if ev.timestamp == nil {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, PlainText(ev.timestamp)); err != nil {
		ev.drop(KindInvalidEventTime).detail("timestamp", FirstChars(PlainText(ev.timestamp), MaxChars))
	}
}

// promotedProperty is a property made of a field beside the properties.
type promotedProperty struct {
	id    int
	name  string // quoted, with a colon
	value []byte
}

// promote sets the property id to value. null changes nothing.
func (d *Decoder) promote(p *properties, id int, name string, value []byte) {
	if IsNull(value) {
		return
	}
	p.val[id] = value
	d.promoted = append(d.promoted, promotedProperty{id, name, value})
}

// promoteMissing sets the property id to value unless the item has it.
func (d *Decoder) promoteMissing(p *properties, id int, name string, value []byte) {
	if len(value) > 0 && IsNull(p.val[id]) {
		d.promote(p, id, name, value)
	}
}

// prepareLibrary prepares the properties $lib and $lib_version of a record, which
// clients of the 2026 protocol send in a header and remove from their events.
func (d *Decoder) prepareLibrary(rec *Record) {
	d.library, d.libraryVersion = d.library[:0], d.libraryVersion[:0]
	name, version, _ := strings.Cut(strings.ToValidUTF8(rec.Library, ""), "/")
	if name = strings.TrimSpace(name); name != "" {
		d.library = jsontext.AppendString(d.library, name)
	}
	if version = strings.TrimSpace(version); version != "" {
		d.libraryVersion = jsontext.AppendString(d.libraryVersion, version)
	}
}

func (d *Decoder) promoteOptions(p *properties, options []byte) {
	s := &d.inner
	s.Reset(options)
	s.Peek()
	s.Open()
	var buf [32]byte
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		key := name.Resolve(buf[:])
		v := s.Value()
		switch string(key) {
		case "process_person_profile":
			d.promote(p, propPersonSwitch, `"$process_person_profile":`, v)
		case "cookieless_mode":
			d.promote(p, propCookieless, `"$cookieless_mode":`, v)
		case "disable_skew_correction", "disable_skew_adjustment":
			d.promote(p, propIgnoreSentAt, `"$ignore_sent_at":`, v)
		case "product_tour_id":
			d.promote(p, propProductTour, `"$product_tour_id":`, v)
		}
	}
}

// addPromoted writes the promoted properties, each once, and returns the properties
// that they replace.
func (d *Decoder) addPromoted() (replaced uint32) {
	for i := len(d.promoted) - 1; i >= 0; i-- {
		x := &d.promoted[i]
		if replaced&(1<<x.id) != 0 {
			continue
		}
		d.buf = append(d.buf, x.name...)
		d.buf = append(jsontext.AppendClean(d.buf, x.value), ',')
		replaced |= 1 << x.id
	}
	return replaced
}
