package journal

import (
	"database/sql"
	"runtime"
	"time"
)

// spaceEvery is the number of bytes written between two checks of the free space.
const spaceEvery = 1 << 20

// writer is the goroutine that makes all writes. It takes all queued requests that
// fit, commits them as one transaction with one fsync, and answers them.
type writer struct {
	j         *store
	conn      *writeConn
	group     group
	requests  []*request
	ownTx     []*request // of those, the jobs that get a transaction of their own
	failed    bool       // a commit has failed: the file may hold records that were refused
	unchecked int        // bytes written since the last look at the free space
	replaced  time.Time  // when the file was last replaced, or that failed
}

// run works until the queue is closed and empty.
func (w *writer) run() {
	for w.j.queue.wait() {
		w.requests = w.j.queue.takeGroup(w.requests[:0], w.j.cfg.MaxGroupRecords, w.j.cfg.MaxGroupBytes)
		w.handleRequests()
		w.j.wal.AfterGroup(w.sqlConn())
		if len(w.requests) > 1 {
			runtime.Gosched() // answered producers may append again: let them share the next fsync
		}
	}
	if w.conn != nil {
		w.conn.close()
	}
}

// sqlConn returns the connection, nil without one.
func (w *writer) sqlConn() *sql.Conn {
	if w.conn == nil {
		return nil
	}
	return w.conn.conn
}

// handleRequests executes and answers the requests of one round.
func (w *writer) handleRequests() {
	g := &w.group
	g.reset(w.j.index.now())
	w.ownTx = w.ownTx[:0]
	refusal := w.j.health.refusal()
	for _, r := range w.requests {
		switch {
		case r.job == nil && refusal != nil:
			r.answer(0, refusal)
		case r.job == nil:
			g.appends = append(g.appends, r)
		case r.job.ownTx:
			w.ownTx = append(w.ownTx, r)
		default:
			w.admit(r)
		}
	}
	w.commitGroup()
	for i, r := range w.ownTx {
		g.reset(w.j.index.now())
		w.admit(r)
		w.commitGroup()
		w.ownTx[i] = nil
	}
}

// commitGroup commits the group and answers its requests.
func (w *writer) commitGroup() {
	g := &w.group
	if len(g.appends)+len(g.jobs) == 0 {
		return
	}
	before := g.extent
	g.pack(w.j.clock.Stamp(g.extent.lastAt))
	err := w.commit()
	if err != nil && w.replaceFile(err) && !g.applies() {
		g.extent = before
		err = w.commit()
	}
	if err != nil {
		w.rejectGroup(err)
		return
	}
	w.publish()
	for i, r := range g.appends {
		r.answer(before.last+1+uint64(i), nil)
	}
	for _, r := range g.jobs {
		r.answer(0, nil)
	}
}

// admit adds a job to the group unless its check refuses.
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
// connection is closed: the next group opens another one.
func (w *writer) commit() error {
	if w.conn == nil {
		l, err := openWriteConn(w.j.writes)
		if err != nil {
			return err
		}
		if w.j.hooks.Link != nil {
			w.j.hooks.Link(l.conn)
		}
		// A failed commit may have stored records that were refused.
		if w.failed {
			if err := exec(l.forget, int64(w.group.extent.last)); err != nil {
				l.close()
				return err
			}
		}
		w.conn = l
	}
	err := exec(w.conn.begin)
	if err == nil {
		err = w.group.write(w.conn)
	}
	if err == nil && w.j.hooks.BeforeCommit != nil {
		err = w.j.hooks.BeforeCommit(len(w.group.appends))
	}
	if err == nil {
		err = exec(w.conn.commit)
	}
	if err != nil {
		_ = exec(w.conn.rollback)
		w.conn.close()
		w.conn, w.failed = nil, true
	}
	return err
}

// rejectGroup answers all requests of the group with an error. Only failed appends
// make the journal refuse further ones.
func (w *writer) rejectGroup(err error) {
	g := &w.group
	refusal := writeFault(err)
	if len(g.appends) > 0 {
		size := 0
		for _, b := range g.blocks {
			size += len(b.Data)
		}
		w.j.health.recordWriteFailure(refusal, size)
	}
	for _, r := range g.appends {
		r.answer(0, refusal)
	}
	for _, r := range g.jobs {
		r.answer(0, refusal)
	}
}

// publish makes the committed state visible to readers, before the requests are
// answered.
func (w *writer) publish() {
	g := &w.group
	w.j.index.publish(g.extent, g.changed)
	if g.free >= 0 {
		w.j.index.setReusable(g.free)
	}
	size, payload := 0, 0
	for _, b := range g.blocks {
		w.j.tail.add(b)
		size += len(b.Data)
		payload += b.Payload()
	}
	w.j.wal.Wrote(int64(size), g.moved)
	if size == 0 {
		return
	}
	w.j.broadcast.notify()
	w.j.metrics.group(len(g.appends), payload)
	if w.unchecked += size; w.unchecked >= spaceEvery {
		w.unchecked = 0
		w.checkSpace()
	}
}

// checkSpace checks the free space between groups, when much was written since the
// last look.
func (w *writer) checkSpace() {
	if n, err := w.conn.freePages(); err == nil {
		w.j.index.setReusable(n * w.j.wal.PageBytes())
	}
	w.j.health.check()
}
