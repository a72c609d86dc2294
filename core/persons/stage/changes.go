package stage

// Changes names what a committed batch changed in one project, for caches.
type Changes struct {
	ProjectID   int64
	Persons     []int64    // stored persons that changed
	Merged      []int64    // stored persons that were merged into another one
	DistinctIDs []string   // new distinct ids
	Groups      []GroupKey // groups whose properties changed
}

// GroupKey names a group within a project.
type GroupKey struct {
	TypeIndex int
	Key       string
}

// published returns the changes of b, nil if nothing changed that a cache may
// hold.
func (b *batchState) published() *Changes {
	c := &Changes{ProjectID: b.project}
	for _, p := range b.loaded {
		switch {
		case p.into != nil:
			c.Merged = append(c.Merged, p.id)
		case p.next != p.stored:
			c.Persons = append(c.Persons, p.id)
		}
	}
	for _, l := range b.links {
		c.DistinctIDs = append(c.DistinctIDs, l.distinctID)
	}
	for _, g := range b.groups.list {
		if g.next != g.stored {
			c.Groups = append(c.Groups, GroupKey{TypeIndex: g.index, Key: g.key})
		}
	}
	if len(c.Persons)+len(c.Merged)+len(c.DistinctIDs)+len(c.Groups)+len(b.groups.newTypes) == 0 {
		return nil
	}
	return c
}
