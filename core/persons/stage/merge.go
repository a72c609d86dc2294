package stage

// mergeIDs makes the event's other id and its distinct id one person, where
// that is allowed, and returns the person of the distinct id.
func (b *batchState) mergeIDs(f *parsedEvent) *person {
	target := f.ev.DistinctID
	for _, pair := range [2][2]string{{target, f.other}, {f.other, target}} {
		if isPlaceholder(pair[0]) {
			b.warnings = append(b.warnings, f.warn(WarnIllegalDistinctID,
				map[string]any{"illegalDistinctId": pair[0], "otherDistinctId": pair[1]}))
			return b.findOrCreate(target, f)
		}
	}
	p := b.mergePersons(b.find(f.other), b.find(target), f)
	p.identified = true
	return p
}

// mergePersons decides by which of the two persons exist, and whether they are
// identified. It returns the person that both ids have afterwards, or target
// if the merge is rejected.
func (b *batchState) mergePersons(other, target *person, f *parsedEvent) *person {
	switch {
	case other == nil && target == nil:
		source := f.ev.DistinctID
		if b.personless[f.other] && !b.personless[source] {
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
	b.mergeInto(other, target, f)
	return target
}

// mergeInto merges from into into. Properties of into win; if the merged ones
// cannot be trimmed to the limit, into keeps its own.
func (b *batchState) mergeInto(from, into *person, f *parsedEvent) {
	both := from.object().Clone()
	for _, m := range into.object().Members {
		both.Set(m.Key, m.Value)
	}
	own := into.props
	into.props, into.dirty = both, true
	if !b.trimToLimit(into, f) {
		into.props = own
	}
	into.createdAt = min(into.createdAt, from.createdAt)
	from.into = into
	b.merges = append(b.merges, merge{from, into})
}
