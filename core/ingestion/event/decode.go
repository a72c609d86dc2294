package event

import (
	"time"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/sdk"
)

// Limits bound a single event. An event over one of them is dropped, with a
// notice; the others of its request are not affected.
type Limits struct {
	MaxEventBytes int `koanf:"max_event_bytes"`
	MaxDepth      int `koanf:"max_depth"`
	MaxProperties int `koanf:"max_properties"`
}

// DefaultLimits is what a client of this protocol may expect.
func DefaultLimits() Limits {
	return Limits{MaxEventBytes: 1 << 20, MaxDepth: 100, MaxProperties: 10_000}
}

// MaxChars is how many characters of a name or a distinct id are kept.
const MaxChars = 200

// Decoded is what a record holds.
type Decoded struct {
	// Events are those to ingest, in the order of the request. Properties may
	// share memory with the record.
	Events []sdk.Event
	// Index is, for each of Events, its place in the request, from 0.
	Index []uint32
	// Notices say what was dropped or changed, and why.
	Notices []Notice
	// Items is how many items the request had.
	Items uint32
}

// Reset empties d for another record and keeps its memory.
func (d *Decoded) Reset() {
	d.Events, d.Index, d.Notices, d.Items = d.Events[:0], d.Index[:0], d.Notices[:0], 0
}

// Decoder turns records into events. It holds only scratch memory: what Decode
// returns depends on the record and the limits alone, on any node and at any
// time. It may not be used by two goroutines at once.
type Decoder struct {
	limits Limits
	scan   jsontext.Scanner
	inner  jsontext.Scanner // for a second look at an object
	ev     item
	props  properties
	arena  []byte // the properties that could not stay as they are
	names  map[string]string

	most  int            // notices of a kind that are listed; 0 for all
	tally map[string]say // of those of this record

	members        []member
	last           map[string]int // of names that may come more than once
	extra          []extra
	chains         chains
	address, clock []byte
}

// NewDecoder returns a Decoder that applies the limits.
func NewDecoder(limits Limits) *Decoder {
	return &Decoder{limits: limits, names: make(map[string]string)}
}

// LimitNotices makes Decode list at most n notices of each kind of a record; the
// last of them counts the rest in More. 0 lists all.
func (d *Decoder) LimitNotices(n int) *Decoder {
	d.most = n
	return d
}

// Decode appends the record's events and notices to out. It never fails: an
// item that is not an event is a notice.
func (d *Decoder) Decode(rec *Record, out *Decoded) {
	s := &d.scan
	s.Reset(rec.Items)
	clear(d.tally)
	d.preface(rec)
	d.arena = make([]byte, 0, len(rec.Items)+len(rec.Items)/4+128)
	switch s.Peek() {
	case '[':
		s.Open()
		for first := true; s.Element(first); first = false {
			d.item(rec, out)
		}
	default:
		d.item(rec, out)
	}
	if !s.End() {
		out.Notices = append(out.Notices, Notice{Index: out.Items, Kind: KindUnreadableRecord, Dropped: true})
	}
	d.arena = nil
}

// item decodes the value at the cursor.
func (d *Decoder) item(rec *Record, out *Decoded) {
	index := out.Items
	out.Items++
	ev := &d.ev
	ev.reset(index)
	s := &d.scan
	start := s.Pos
	s.Deepest, s.Dirty = s.Depth, false
	base := s.Depth
	if c := s.Peek(); c != '{' {
		ev.drop(KindNotAnObject)
		if c == 'n' {
			ev.verdict.Kind = KindEmptyEvent
		}
		s.Skip()
	} else {
		start = s.Pos
		ev.readFields(s, &d.props)
	}
	if s.Bad {
		return
	}
	switch {
	case s.Pos-start > d.limits.MaxEventBytes:
		ev.drop(KindTooLarge).detail("bytes", s.Pos-start).detail("limit", d.limits.MaxEventBytes)
	case s.Deepest-base > d.limits.MaxDepth:
		ev.drop(KindTooDeep).detail("limit", d.limits.MaxDepth)
	}
	event := sdk.Event{UUID: ev.eventUUID(rec)}
	if ev.kept() {
		d.build(rec, ev, &event)
	}
	for i := range ev.changes {
		d.label(ev, &event, &ev.changes[i])
	}
	if !ev.kept() {
		d.label(ev, &event, &ev.verdict)
		d.say(out, ev.verdict)
		return
	}
	for _, n := range ev.changes {
		d.say(out, n)
	}
	out.Events = append(out.Events, event)
	out.Index = append(out.Index, index)
}

// say is how many notices of a kind are listed, and where the last one is.
type say struct{ listed, last int }

// say adds a notice, or counts it with the last one of its kind when there are
// many.
func (d *Decoder) say(out *Decoded, n Notice) {
	if d.most == 0 {
		out.Notices = append(out.Notices, n)
		return
	}
	t := d.tally[n.Kind]
	if t.listed >= d.most {
		out.Notices[t.last].More++
		return
	}
	if d.tally == nil {
		d.tally = make(map[string]say)
	}
	d.tally[n.Kind] = say{t.listed + 1, len(out.Notices)}
	out.Notices = append(out.Notices, n)
}

// label puts the names by which a person finds the event into the notice.
func (d *Decoder) label(ev *item, event *sdk.Event, n *Notice) {
	n.Index = ev.index
	n.EventName, n.EventUUID, n.DistinctID = event.Name, event.UUID, event.DistinctID
	if n.EventName == "" && ev.name != nil {
		n.EventName = FirstChars(PlainText(ev.name), MaxChars)
	}
}

// build makes the event out of what was read; it may still drop it.
func (d *Decoder) build(rec *Record, ev *item, event *sdk.Event) {
	p := &d.props
	switch {
	case p.wrong:
		ev.drop(KindInvalidProperties)
		return
	case p.count > d.limits.MaxProperties:
		ev.drop(KindTooManyProperties).detail("count", p.count).detail("limit", d.limits.MaxProperties)
		return
	}
	d.extra = d.extra[:0]
	if rec.Verbatim {
		if d.verbatim(ev, p); !ev.kept() {
			return
		}
	}
	event.ProjectID = rec.ProjectID
	event.ReceivedAt = rec.ReceivedAt
	if event.Name = d.name(rec, ev); event.Name == "" {
		ev.drop(KindMissingName)
		return
	}
	if event.DistinctID = d.distinctID(ev, p); event.DistinctID == "" {
		ev.drop(KindInvalidDistinctID)
		return
	}
	event.Timestamp = d.timestamp(rec, ev, p)
	out := d.special(rec, ev, p, event.Name)
	if !ev.kept() {
		return
	}
	out |= d.elements(p, event)
	event.Properties = d.rewrite(ev, p, out)
}

// timestamp returns when the event happened, and notes what it had to ignore.
func (d *Decoder) timestamp(rec *Record, ev *item, p *properties) time.Time {
	in := clockInput{sentAt: rec.SentAt, now: rec.ReceivedAt}
	in.timestamp, in.timestampBad = timeText(ev.timestamp)
	in.offset = number(ev.offset)
	in.ignoreSentAt = string(p.val[propIgnoreSentAt]) == "true"
	at, issues := resolveTime(in)
	for _, is := range issues {
		n := ev.change(is.kind)
		switch is.kind {
		case KindFutureTimestamp:
			n.detail("timestamp", in.timestamp).detail("sentAt", in.sentAt).detail("offset", in.offset).
				detail("now", in.now).detail("result", at)
		default:
			n.detail("field", is.field).detail("value", is.value).detail("reason", is.reason)
		}
	}
	return at
}
