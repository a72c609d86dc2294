package journal

import "runtime"

// spaceEvery is how much is written between two looks at the free space.
const spaceEvery = 1 << 20

// writer is the goroutine that owns everything that is written. It takes all
// that waits, commits it as one transaction with one fsync, and answers
// everyone who waited.
type writer struct {
	j        *store
	link     *link
	group    group
	requests []*request
	alone    []*request // of those, the jobs that get a transaction of their own
	unlooked int        // bytes written since the last look at the free space
}

// run works until the queue is closed and empty.
func (w *writer) run() {
	for w.j.queue.wait() {
		w.requests = w.j.queue.take(w.requests[:0], w.j.cfg.MaxGroupRecords, w.j.cfg.MaxGroupBytes)
		w.serve()
		w.j.wal.afterGroup(w)
		if len(w.requests) > 1 {
			runtime.Gosched() // those just answered may come back at once: let them share the next fsync
		}
	}
	if w.link != nil {
		w.link.close()
	}
}

// serve sees the requests of one round through.
func (w *writer) serve() {
	g := &w.group
	g.reset(w.j.ledger.now())
	w.alone = w.alone[:0]
	refusal := w.j.health.refusal()
	for _, r := range w.requests {
		switch {
		case r.job == nil && refusal != nil:
			r.answer(0, refusal)
		case r.job == nil:
			g.appends = append(g.appends, r)
		case r.job.alone:
			w.alone = append(w.alone, r)
		default:
			w.admit(r)
		}
	}
	w.finish()
	for i, r := range w.alone {
		g.reset(w.j.ledger.now())
		w.admit(r)
		w.finish()
		w.alone[i] = nil
	}
}

// finish commits the group and answers everyone in it.
func (w *writer) finish() {
	g := &w.group
	if len(g.appends)+len(g.jobs) == 0 {
		return
	}
	base := g.extent.last
	g.pack(w.j.clock.stamp(g.extent.lastAt))
	if err := w.commit(); err != nil {
		w.fail(err)
		return
	}
	w.publish()
	for i, r := range g.appends {
		r.answer(base+1+uint64(i), nil)
	}
	for _, r := range g.jobs {
		r.answer(0, nil)
	}
}

// admit lets a job into the group unless its own check refuses it.
func (w *writer) admit(r *request) {
	if r.job.check != nil {
		if err := r.job.check(&w.group); err != nil {
			r.answer(0, err)
			return
		}
	}
	w.group.jobs = append(w.group.jobs, r)
}

// commit writes the group. After an error nothing of it is visible, and the
// connection is thrown away: the next group starts on a fresh one.
func (w *writer) commit() error {
	if w.link == nil {
		l, err := openLink(w.j.writes)
		if err != nil {
			return err
		}
		if w.j.hooks.Link != nil {
			w.j.hooks.Link(l.conn)
		}
		// What a failed commit may have left behind all the same was refused.
		if err := exec(l.forget, int64(w.group.extent.last)); err != nil {
			l.close()
			return err
		}
		w.link = l
	}
	err := exec(w.link.begin)
	if err == nil {
		err = w.group.write(w.link)
	}
	if err == nil && w.j.hooks.BeforeCommit != nil {
		err = w.j.hooks.BeforeCommit(len(w.group.appends))
	}
	if err == nil {
		err = exec(w.link.commit)
	}
	if err != nil {
		_ = exec(w.link.rollback)
		w.link.close()
		w.link = nil
	}
	return err
}

// fail tells everyone in the group that nothing was stored. Only appends that
// failed make the journal refuse more of them.
func (w *writer) fail(err error) {
	g := &w.group
	refusal := writeFault(err)
	if len(g.appends) > 0 {
		size := 0
		for _, b := range g.blocks {
			size += len(b.data)
		}
		w.j.health.broke(refusal, size)
	}
	for _, r := range g.appends {
		r.answer(0, refusal)
	}
	for _, r := range g.jobs {
		r.answer(0, refusal)
	}
}

// publish makes what was committed visible to readers, before its writers
// hear of it.
func (w *writer) publish() {
	g := &w.group
	w.j.ledger.publish(g.extent, g.changed)
	if g.free >= 0 {
		w.j.ledger.setReusable(g.free)
	}
	size, payload := 0, 0
	for _, b := range g.blocks {
		w.j.tail.add(b)
		size += len(b.data)
		payload += b.payload()
	}
	w.j.wal.wrote(int64(size), g.moved)
	if size == 0 {
		return
	}
	w.j.bell.ring()
	w.j.metrics.group(len(g.appends), payload)
	if w.unlooked += size; w.unlooked >= spaceEvery {
		w.unlooked = 0
		w.look()
	}
}

// look checks the free space between groups, when much was written since the
// last look.
func (w *writer) look() {
	if n, err := w.link.freePages(); err == nil {
		w.j.ledger.setReusable(n * pageBytes)
	}
	w.j.health.look()
}
