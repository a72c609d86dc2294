package event

import (
	"time"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/sdk"
)

// Limits bound a single event. An event that exceeds one is dropped with a
// notice; the other events of its request are not affected.
type Limits struct {
	MaxEventBytes int `koanf:"max_event_bytes"`
	MaxDepth      int `koanf:"max_depth"`
	MaxProperties int `koanf:"max_properties"`
}

// DefaultLimits returns the limits that clients of this protocol expect.
func DefaultLimits() Limits {
	return Limits{MaxEventBytes: 1 << 20, MaxDepth: 100, MaxProperties: 10_000}
}

// MaxChars bounds the characters of a name and of a distinct id.
const MaxChars = 200

// Decoded is the content of a record.
type Decoded struct {
	// Events are those to ingest, in the order of the request. Properties may
	// share memory with the record.
	Events []sdk.Event
	// Index holds the index of each of Events in the request, from 0, ascending.
	Index []uint32
	// Notices are the drops and changes, with reasons.
	Notices []Notice
	// Items is the number of items in the request, as far as the record shows: the
	// index of its last item plus one.
	Items uint32
}

// Reset empties d and keeps its memory.
func (d *Decoded) Reset() {
	d.Events, d.Index, d.Notices, d.Items = d.Events[:0], d.Index[:0], d.Notices[:0], 0
}

// Decoder turns records into events. It holds scratch memory only: the result of
// Decode depends on the record and the limits alone, on any node and at any time.
// A Decoder is for one goroutine. Its methods are the steps of one pass over a
// record and share its scratch memory.
type Decoder struct {
	limits Limits
	scan   jsontext.Scanner
	inner  jsontext.Scanner // for reading an object a second time
	ev     item
	props  properties
	buf    []byte // rewritten properties
	names  map[string]string

	maxListed    int                    // notices listed per kind; 0 is all
	noticeCounts map[string]noticeCount // by kind, of this record

	members                 []member
	last                    map[string]int // index of each name, for long objects
	promoted                []promotedProperty
	chains                  chainWriter
	ipPrefix, sentAtPrefix  []byte
	location                []byte // of the record
	locationPrefix          []byte // its properties
	library, libraryVersion []byte // JSON strings, empty without one
}

// NewDecoder returns a Decoder that applies the limits.
func NewDecoder(limits Limits) *Decoder {
	return &Decoder{limits: limits, names: make(map[string]string)}
}

// LimitNotices makes Decode list at most n notices of each kind of a record; the
// last of them counts the rest in More. 0 lists all.
func (d *Decoder) LimitNotices(n int) *Decoder {
	d.maxListed = n
	return d
}

// Decode appends the record's events and notices to out. It never fails: an item
// that is not an event becomes a notice.
func (d *Decoder) Decode(rec *Record, out *Decoded) {
	s := &d.scan
	s.Reset(rec.Items)
	clear(d.noticeCounts)
	d.preparePrefix(rec)
	indexes := rec.Indexes
	if rec.Verbatim {
		d.prepareLibrary(rec)
	}
	d.buf = make([]byte, 0, len(rec.Items)+len(rec.Items)/4+128+len(d.locationPrefix)*(1+len(rec.Items)/1024))
	switch s.Peek() {
	case '[':
		s.Open()
		for first := true; s.Element(first); first = false {
			out.Items, indexes = nextIndex(out.Items, indexes)
			d.decodeItem(rec, out)
		}
	default:
		out.Items, _ = nextIndex(out.Items, indexes)
		d.decodeItem(rec, out)
	}
	if !s.End() {
		out.Notices = append(out.Notices, Notice{Index: out.Items, Kind: KindUnreadableRecord, Dropped: true})
	}
	d.buf = nil
}

// decodeItem decodes the item at the cursor.
func (d *Decoder) decodeItem(rec *Record, out *Decoded) {
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
			ev.dropNotice.Kind = KindEmptyEvent
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
		d.buildEvent(rec, ev, &event)
	}
	for i := range ev.changes {
		d.annotate(ev, &event, &ev.changes[i])
	}
	if !ev.kept() {
		d.annotate(ev, &event, &ev.dropNotice)
		d.addNotice(out, ev.dropNotice)
		return
	}
	for _, n := range ev.changes {
		d.addNotice(out, n)
	}
	out.Events = append(out.Events, event)
	out.Index = append(out.Index, index)
}

// noticeCount is the number of listed notices of a kind and the index of the last.
type noticeCount struct{ listed, last int }

// addNotice adds a notice. Beyond the limit it counts the notice in the last one
// of its kind.
func (d *Decoder) addNotice(out *Decoded, n Notice) {
	if d.maxListed == 0 {
		out.Notices = append(out.Notices, n)
		return
	}
	t := d.noticeCounts[n.Kind]
	if t.listed >= d.maxListed {
		out.Notices[t.last].More++
		return
	}
	if d.noticeCounts == nil {
		d.noticeCounts = make(map[string]noticeCount)
	}
	d.noticeCounts[n.Kind] = noticeCount{t.listed + 1, len(out.Notices)}
	out.Notices = append(out.Notices, n)
}

// annotate sets the index, name, uuid and distinct id of the event in the notice.
func (d *Decoder) annotate(ev *item, event *sdk.Event, n *Notice) {
	n.Index = ev.index
	n.EventName, n.EventUUID, n.DistinctID = event.Name, event.UUID, event.DistinctID
	if n.EventName == "" && ev.name != nil {
		n.EventName = FirstChars(PlainText(ev.name), MaxChars)
	}
}

// buildEvent builds the event from the item. It may drop the event.
func (d *Decoder) buildEvent(rec *Record, ev *item, event *sdk.Event) {
	p := &d.props
	switch {
	case p.notObject:
		ev.drop(KindInvalidProperties)
		return
	case p.count > d.limits.MaxProperties:
		ev.drop(KindTooManyProperties).detail("count", p.count).detail("limit", d.limits.MaxProperties)
		return
	}
	d.promoted = d.promoted[:0]
	if rec.Verbatim {
		if d.applyVerbatim(ev, p); !ev.kept() {
			return
		}
	}
	event.ProjectID = rec.ProjectID
	event.ReceivedAt = rec.ReceivedAt
	if event.Name = d.eventName(rec, ev); event.Name == "" {
		ev.drop(KindMissingName)
		return
	}
	if event.DistinctID = d.distinctID(ev, p); event.DistinctID == "" {
		ev.drop(KindInvalidDistinctID)
		return
	}
	event.Timestamp = d.resolveTimestamp(rec, ev, p)
	out := d.applyEventRules(rec, ev, p, event.Name)
	if !ev.kept() {
		return
	}
	out |= d.setElementsChain(p, event)
	event.Properties = d.rewriteProperties(ev, p, out)
}

// resolveTimestamp returns when the event happened, with a notice for each value
// that it ignores. The timestamps of an import are explicit and older than the
// sender's clock: they are not corrected by it.
func (d *Decoder) resolveTimestamp(rec *Record, ev *item, p *properties) time.Time {
	in := clockInput{sentAt: rec.SentAt, now: rec.ReceivedAt}
	in.timestamp, in.timestampBad = timestampText(ev.timestamp)
	in.offset = numberOf(ev.offset)
	in.ignoreSentAt = rec.Historical || string(p.val[propIgnoreSentAt]) == "true"
	at, issues := resolveTime(in)
	for _, is := range issues {
		n := ev.addChange(is.kind)
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
