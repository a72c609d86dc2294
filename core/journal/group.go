package journal

import (
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/guidonhq/guidon/core/journal/format"
)

// job is work for the writer that is not an append. check sees the state of the
// group and may refuse, which fails only this job. apply runs SQL in the
// transaction of the group, where a failure fails the whole group; ownTx gives
// the job a transaction of its own.
type job struct {
	ownTx bool
	check func(g *group) error
	apply func(g *group, l *writeConn) error
}

// group is the content of one transaction: its requests, and the state after the
// commit.
type group struct {
	appends []*request
	jobs    []*request
	blocks  []format.Block

	extent  extent
	readers readers            // as committed
	changed map[string]*cursor // over readers; nil is removed
	free    int64              // unused bytes in the file, -1 if not measured
	moved   int64              // estimate of the bytes that jobs wrote

	records [][]byte // scratch of pack
}

func (g *group) reset(e extent, r readers) {
	clear(g.appends)
	clear(g.jobs)
	clear(g.blocks)
	clear(g.records)
	g.appends, g.jobs, g.blocks, g.records = g.appends[:0], g.jobs[:0], g.blocks[:0], g.records[:0]
	g.extent, g.readers, g.free, g.moved = e, r, -1, 0
	clear(g.changed)
}

// applies reports whether a job runs SQL of its own, so that the group cannot be
// committed a second time.
func (g *group) applies() bool {
	return slices.ContainsFunc(g.jobs, func(r *request) bool { return r.job.apply != nil })
}

// reader returns the cursor of that name after the commit of this group.
func (g *group) reader(name string) (cursor, bool) {
	if c, ok := g.changed[name]; ok {
		if c == nil {
			return cursor{}, false
		}
		return *c, true
	}
	c, ok := g.readers[name]
	return c, ok
}

func (g *group) set(name string, c cursor) {
	if g.changed == nil {
		g.changed = map[string]*cursor{}
	}
	g.changed[name] = &c
}

func (g *group) remove(name string) {
	if g.changed == nil {
		g.changed = map[string]*cursor{}
	}
	g.changed[name] = nil
}

// all returns the cursors after the commit of this group.
func (g *group) all() readers {
	all := maps.Clone(g.readers)
	for name, c := range g.changed {
		if c == nil {
			delete(all, name)
		} else {
			all[name] = *c
		}
	}
	return all
}

// pack puts the appends into blocks, numbered after the newest record and stamped
// with the time at.
func (g *group) pack(at int64) {
	seq, pos, payload := g.extent.last+1, g.extent.endPos, 0
	flush := func() {
		if len(g.records) == 0 {
			return
		}
		g.blocks = append(g.blocks, format.NewBlock(seq, at, pos, g.records))
		seq += uint64(len(g.records))
		pos += int64(payload)
		payload = 0
		g.records = g.records[:0]
	}
	for _, r := range g.appends {
		if !format.Fits(len(g.records), payload, len(r.data)) {
			flush()
		}
		g.records = append(g.records, r.data)
		payload += len(r.data)
	}
	flush()
}

// write runs the group's SQL inside a transaction that is already open.
func (g *group) write(l *writeConn) error {
	for _, r := range g.jobs {
		if r.job.apply == nil {
			continue
		}
		if err := r.job.apply(g, l); err != nil {
			return err
		}
	}
	for name, c := range g.changed {
		if c == nil {
			if err := exec(l.dropReader, name); err != nil {
				return err
			}
			continue
		}
		p := c.position
		if err := exec(l.setReader, name, int64(p.Seq), int64(p.Index), int64(p.Count), c.dropped); err != nil {
			return err
		}
	}
	for _, b := range g.blocks {
		if err := l.insertBlock(b); err != nil {
			return err
		}
		g.extent = g.extent.add(b)
	}
	return nil
}

// trimTo removes every block that ends at or before cut, and counts the records
// that readers lose. It returns the number of removed records.
func (g *group) trimTo(cut uint64, l *writeConn) (int64, error) {
	before := g.extent.first
	if err := exec(l.remove, int64(cut)); err != nil {
		return 0, err
	}
	var seq int64
	e := g.extent
	err := l.oldest.QueryRowContext(uninterrupted).Scan(&seq, &e.firstAt, &e.firstPos)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		e.first, e.firstAt, e.firstPos = e.last+1, 0, e.endPos
		err = exec(l.head, int64(e.first), e.endPos)
	case err == nil:
		e.first = uint64(seq)
	}
	if err != nil {
		return 0, err
	}
	g.extent = e
	for name, c := range g.all() {
		if done := max(c.position.Seq, before-1); done < e.first-1 {
			c.dropped += int64(e.first - 1 - done)
			g.set(name, c)
		}
	}
	return int64(e.first - before), nil
}
