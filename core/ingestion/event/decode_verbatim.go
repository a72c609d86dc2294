package event

import (
	"github.com/guidonhq/guidon/core/jsontext"
	"time"
	"unicode/utf8"
)

// verbatim applies what is different about the events of the 2026 protocol:
// they carry options and session ids beside their properties, which are written
// back into them, and they are dropped where older events are mended.
func (d *Decoder) verbatim(ev *item, p *properties) {
	d.extra = d.extra[:0]
	d.lift(p, propSessionID, `"$session_id":`, ev.sessionID)
	d.lift(p, propWindowID, `"$window_id":`, ev.windowID)
	if IsObject(ev.options) {
		d.liftOptions(p, ev.options)
	}
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

// extra is a property that comes from beside the properties.
type extra struct {
	id    int
	name  string // quoted, with a colon
	value []byte
}

// lift makes value the property id; null leaves it as it is.
func (d *Decoder) lift(p *properties, id int, name string, value []byte) {
	if IsNull(value) {
		return
	}
	p.val[id] = value
	d.extra = append(d.extra, extra{id, name, value})
}

func (d *Decoder) liftOptions(p *properties, options []byte) {
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
			d.lift(p, propPersonSwitch, `"$process_person_profile":`, v)
		case "cookieless_mode":
			d.lift(p, propCookieless, `"$cookieless_mode":`, v)
		case "disable_skew_correction", "disable_skew_adjustment":
			d.lift(p, propIgnoreSentAt, `"$ignore_sent_at":`, v)
		case "product_tour_id":
			d.lift(p, propProductTour, `"$product_tour_id":`, v)
		}
	}
}

// addExtras writes the lifted properties, each once, and returns which of the
// sent ones they replace.
func (d *Decoder) addExtras() (replaced uint32) {
	for i := len(d.extra) - 1; i >= 0; i-- {
		x := &d.extra[i]
		if replaced&(1<<x.id) != 0 {
			continue
		}
		d.arena = append(d.arena, x.name...)
		d.arena = append(jsontext.AppendClean(d.arena, x.value), ',')
		replaced |= 1 << x.id
	}
	return replaced
}
