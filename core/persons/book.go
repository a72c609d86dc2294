package persons

import (
	"time"
)

// person is a person as the stage works on it.
type person struct {
	id         int64 // 0 until stored
	uuid       string
	createdAt  int64 // unix microseconds
	identified bool
	version    int64

	loaded row     // as it is stored; zero when it is not
	next   row     // as it is to be stored, once changes has run
	into   *person // whom it was merged into

	props  object
	parsed bool
	dirty  bool // props may differ from what is stored
}

// row is what one row of the table persons holds of what the stage may change.
type row struct {
	properties string
	createdAt  int64
	identified bool
}

// final follows merges to the person that is left.
func (p *person) final() *person {
	for p.into != nil {
		p = p.into
	}
	return p
}

func (p *person) properties() *object {
	if !p.parsed {
		p.props = parseStored(p.loaded.properties)
		p.parsed = true
	}
	return &p.props
}

// row is what is to be stored of p.
func (p *person) row() row {
	r := row{properties: p.loaded.properties, createdAt: p.createdAt, identified: p.identified}
	if p.dirty {
		r.properties = p.props.text()
	}
	return r
}

// link gives a distinct id to a person.
type link struct {
	distinctID string
	to         *person
	place      int // among the links of its batch
}

// merge is one person becoming another.
type merge struct{ from, into *person }

// book holds the people of one project that a batch is about: what was loaded,
// and what the events of the batch made of it. It thinks in memory only; store
// loads it and writes it back.
type book struct {
	project int64
	attempt int                // how often the batch was tried before
	ids     map[string]*person // by distinct id; follow final
	byID    map[int64]*person  // those that are stored
	alone   map[string]bool    // distinct ids seen without a person, ever
	loners  []string           // those among them that this batch adds

	created []*person
	known   []*person // loaded
	links   []link    // new distinct ids, in the order they appeared
	merges  []merge

	groups   groupBook
	warnings []Warning
	scratch  update
	random   func() string // person ids that no distinct id gives; nil in the usual case
}

func newBook(project int64) *book {
	return &book{
		project: project, ids: map[string]*person{}, byID: map[int64]*person{}, alone: map[string]bool{},
	}
}

// take lets one event have its effect.
func (b *book) take(f *fact) {
	if f.mode == profileless {
		b.passBy(f)
		return
	}
	fresh := len(b.created)
	if f.merge {
		f.who = b.merge(f)
	} else {
		f.who = b.personOf(f.ev.DistinctID, f)
	}
	b.update(f.who, f, len(b.created) > fresh)
	b.groups.take(b, f)
}

// passBy sees an event that must not make a person; it is attributed to one
// that is already there.
func (b *book) passBy(f *fact) {
	if p := b.find(f.ev.DistinctID); p != nil {
		f.who = p
		return
	}
	if !b.alone[f.ev.DistinctID] {
		b.alone[f.ev.DistinctID] = true
		b.loners = append(b.loners, f.ev.DistinctID)
	}
}

func (b *book) find(distinctID string) *person {
	if p := b.ids[distinctID]; p != nil {
		return p.final()
	}
	return nil
}

// personOf returns the person of a distinct id; there is one from now on.
func (b *book) personOf(distinctID string, f *fact) *person {
	if p := b.find(distinctID); p != nil {
		return p
	}
	p := b.create(distinctID, f)
	b.link(distinctID, p)
	return p
}

// create makes a person whose id follows from distinctID.
func (b *book) create(distinctID string, f *fact) *person {
	p := &person{uuid: PersonUUID(b.project, distinctID), createdAt: micros(f.ev.Timestamp), parsed: true, dirty: true}
	if b.random != nil {
		p.uuid = b.random()
	}
	b.created = append(b.created, p)
	return p
}

func (b *book) link(distinctID string, p *person) {
	b.ids[distinctID] = p
	b.links = append(b.links, link{distinctID: distinctID, to: p})
}

// merge makes the event's other id and its distinct id one person, where that
// is allowed, and returns the person of the distinct id.
func (b *book) merge(f *fact) *person {
	target := f.ev.DistinctID
	for _, pair := range [2][2]string{{target, f.other}, {f.other, target}} {
		if illegal(pair[0]) {
			b.warnings = append(b.warnings, f.warn(WarnIllegalDistinctID,
				map[string]any{"illegalDistinctId": pair[0], "otherDistinctId": pair[1]}))
			return b.personOf(target, f)
		}
	}
	p := b.unite(b.find(f.other), b.find(target), f)
	p.identified = true
	return p
}

// unite is the table of what becomes of the two persons of a merge.
func (b *book) unite(other, target *person, f *fact) *person {
	switch {
	case other == nil && target == nil:
		source := f.ev.DistinctID
		if b.alone[f.other] && !b.alone[source] {
			source = f.other
		}
		p := b.create(source, f)
		b.link(f.ev.DistinctID, p)
		b.link(f.other, p)
		return p
	case target == nil:
		b.link(f.ev.DistinctID, other)
		return other
	case other == nil:
		b.link(f.other, target)
		return target
	case other == target:
		return target
	case other.identified && !f.dangerous:
		b.warnings = append(b.warnings, f.warn(WarnAlreadyIdentified,
			map[string]any{"sourcePersonDistinctId": f.other, "targetPersonDistinctId": f.ev.DistinctID}))
		return target
	}
	b.absorb(other, target, f)
	return target
}

// absorb merges from into into: what into says of itself wins.
func (b *book) absorb(from, into *person, f *fact) {
	both := from.properties().clone()
	for _, m := range into.properties().members {
		both.set(m.key, m.val)
	}
	into.props = both
	own := into.props
	into.props, into.dirty = both, true
	if !b.fit(into, f) {
		into.props = own
	}
	into.createdAt = min(into.createdAt, from.createdAt)
	from.into = into
	b.merges = append(b.merges, merge{from, into})
}

// update lets the event change the properties of p.
func (b *book) update(p *person, f *fact, fresh bool) {
	u := &b.scratch
	u.read(f)
	o := p.properties()
	changes, loud := u.worthwhile(o)
	if changes && (loud || f.personal || fresh) {
		b.change(p, f, u)
	}
	if fresh {
		o.set("$creator_event_uuid", `"`+f.ev.UUID+`"`)
	}
}

func (b *book) change(p *person, f *fact, u *update) {
	const names = 4096 // more than the names that copying adds
	p.dirty = true
	if p.props.size()+2*len(f.ev.Properties)+names < maxProperties {
		u.apply(&p.props)
		return
	}
	old := p.props.clone()
	u.apply(&p.props)
	if !b.fit(p, f) {
		p.props = old
	}
}

// fit trims properties that have grown too large; false when that is not
// enough and they have to be given up. The project is told either way.
func (b *book) fit(p *person, f *fact) bool {
	size := p.props.size()
	if size <= maxProperties {
		return true
	}
	details := map[string]any{"personId": p.uuid, "bytes": size, "limit": maxProperties}
	dropped, ok := trim(&p.props)
	if ok {
		details["droppedProperties"] = dropped[:min(len(dropped), 100)]
	} else {
		details["rejected"] = true
	}
	b.warnings = append(b.warnings, f.warn(WarnPersonSize, details))
	return ok
}

// micros is t as the database keeps it.
func micros(t time.Time) int64 { return t.UnixMicro() }
