package stage

// batchState holds the persons and groups of one project during a batch: what
// was loaded, and what the events changed. It works in memory; batchStore loads
// and saves it.
type batchState struct {
	project    int64
	attempt    int                // number of earlier attempts
	ids        map[string]*person // by distinct id; use root
	byID       map[int64]*person  // stored persons
	personless map[string]bool    // distinct ids that were seen without a person

	created       []*person
	loaded        []*person
	links         []link // new distinct ids, in order of appearance
	merges        []merge
	newPersonless []string // distinct ids that this batch adds to personless

	groups   groupState
	warnings []Warning
	scratch  update
	newUUID  func() string // nil: derive the uuid from the distinct id
}

func newBatchState(project int64) *batchState {
	return &batchState{
		project: project, ids: map[string]*person{}, byID: map[int64]*person{}, personless: map[string]bool{},
	}
}

// applyEvent applies one event.
func (b *batchState) applyEvent(f *parsedEvent) {
	if f.mode == personless {
		b.applyPersonless(f)
		return
	}
	created := len(b.created)
	if f.merge {
		f.person = b.mergeIDs(f)
	} else {
		f.person = b.findOrCreate(f.ev.DistinctID, f)
	}
	b.updatePerson(f.person, f, len(b.created) > created)
	b.groups.applyEvent(b, f)
}

// applyPersonless applies an event that must not create a person. It belongs
// to an existing person of its distinct id.
func (b *batchState) applyPersonless(f *parsedEvent) {
	if p := b.find(f.ev.DistinctID); p != nil {
		f.person = p
		return
	}
	if !b.personless[f.ev.DistinctID] {
		b.personless[f.ev.DistinctID] = true
		b.newPersonless = append(b.newPersonless, f.ev.DistinctID)
	}
}

func (b *batchState) find(distinctID string) *person {
	if p := b.ids[distinctID]; p != nil {
		return p.root()
	}
	return nil
}

func (b *batchState) findOrCreate(distinctID string, f *parsedEvent) *person {
	if p := b.find(distinctID); p != nil {
		return p
	}
	p := b.create(distinctID, f)
	b.link(distinctID, p)
	return p
}

// create creates a person whose uuid derives from distinctID.
func (b *batchState) create(distinctID string, f *parsedEvent) *person {
	p := &person{uuid: PersonUUID(b.project, distinctID), createdAt: toMicros(f.ev.Timestamp), parsed: true, dirty: true}
	if b.newUUID != nil {
		p.uuid = b.newUUID()
	}
	b.created = append(b.created, p)
	return p
}

func (b *batchState) link(distinctID string, p *person) {
	b.ids[distinctID] = p
	b.links = append(b.links, link{distinctID: distinctID, person: p})
}

// updatePerson applies the property changes of the event to p. A change of
// insignificant properties alone is dropped unless p is written anyway.
func (b *batchState) updatePerson(p *person, f *parsedEvent, created bool) {
	u := &b.scratch
	u.collect(f)
	o := p.object()
	if f.located {
		u.fitLocation(o)
	}
	changes, significant := u.effect(o)
	if changes && (significant || f.personal || created) {
		b.applyUpdate(p, f, u)
	}
	if created {
		o.Set("$creator_event_uuid", `"`+f.ev.UUID+`"`)
	}
}

func (b *batchState) applyUpdate(p *person, f *parsedEvent, u *update) {
	const copiedNames = 4096 // more than the names that copying adds
	p.dirty = true
	if p.props.Size()+2*len(f.ev.Properties)+copiedNames < maxProperties {
		u.apply(&p.props)
		return
	}
	old := p.props.Clone()
	u.apply(&p.props)
	if !b.trimToLimit(p, f) {
		p.props = old
	}
}

// trimToLimit trims properties above the size limit and adds a warning. It
// returns false if they cannot be trimmed; the caller must then discard them.
func (b *batchState) trimToLimit(p *person, f *parsedEvent) bool {
	size := p.props.Size()
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
