package ingestion

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
)

// sourcePast names the cursors of walks that deliver imports.
const sourcePast = "historical/"

// register finds the sink's places in the journal; false when told to stop.
func (d *delivery) register() bool {
	reader := sourceSink + d.sink.Name()
	var at, past journal.Position
	var importing bool
	ok := d.insist(func() (err error) {
		if at, err = d.log.Register(d.running, reader, d.cfg.Deliver.start()); err != nil {
			return err
		}
		past, importing, err = d.findPast(sourcePast + reader)
		return err
	})
	if !ok {
		return false
	}
	d.live = &walk{reader: reader, out: make(chan *stretch)}
	d.keep(d.live, at)
	if importing {
		d.past = &walk{reader: sourcePast + reader, historical: true, out: make(chan *stretch)}
		d.keep(d.past, past)
	}
	return true
}

// insist does something until it works; false when told to stop.
func (d *delivery) insist(do func() error) bool {
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for {
		err := do()
		if err == nil {
			return true
		}
		d.tally.failed("starting", err)
		if !sleep(d.running, pause.pause()) {
			return false
		}
	}
}

// findPast looks for a walk through imports that has not ended. One that was
// not given its place before the server was killed had nothing to do yet.
func (d *delivery) findPast(reader string) (at journal.Position, found bool, err error) {
	stats, err := d.log.Stats(d.running)
	if err != nil {
		return at, false, err
	}
	i := slices.IndexFunc(stats.Readers, func(r journal.ReaderStats) bool { return r.Name == reader })
	if i < 0 {
		return at, false, nil
	}
	if stats.Readers[i].Position.Count == 0 {
		return at, false, d.log.Unregister(d.running, reader)
	}
	return stats.Readers[i].Position, true, nil
}

// keep has the place of a walk written down as it moves.
func (d *delivery) keep(w *walk, at journal.Position) {
	w.commit, w.at = newCommitter(d.log, w.reader, at, d.logger), at
	ctx, enough := context.WithCancel(d.running)
	w.enough = enough
	d.confirmed.Go(func() { w.commit.run(ctx) })
}

// walkOn begins to read, from where everything is safe.
func (d *delivery) walkOn(w *walk) {
	at := w.commit.position()
	w.at, w.sighted, w.out = at, nil, make(chan *stretch)
	ctx, halt := context.WithCancel(d.voyaging)
	w.halt = halt
	d.walking.Go(func() { d.assemble(ctx, w, at) })
}

// openPast begins to deliver imports, which the live walk passes over from here
// on: a large one would delay what happens now. It has a place in the journal
// before the live walk's place moves on. It fails only when told to stop.
func (d *delivery) openPast(from journal.Position) bool {
	w := &walk{reader: sourcePast + d.live.reader, historical: true, bound: newBound(from.Seq)}
	from.Count = max(d.number, 1) // tells that it has its place
	ok := d.insist(func() error {
		at, err := d.log.Register(d.running, w.reader, journal.Begin)
		if err != nil {
			return err
		}
		from.Seq = max(from.Seq, at.Seq)
		return d.log.Commit(d.running, w.reader, from)
	})
	if !ok {
		return false
	}
	d.number = max(d.number, from.Count)
	d.keep(w, from)
	d.past = w
	d.walkOn(w)
	return true
}

// lookAgain is how often it is seen whether the walk through imports can end.
const lookAgain = 200 * time.Millisecond

// look returns when that is to be seen again; never when there is none.
func (d *delivery) look() <-chan time.Time {
	if d.past == nil {
		return nil
	}
	return time.After(lookAgain)
}

// closePast ends the walk through imports when it has caught up with the live
// one, and the place of that alone tells which numbers were given.
func (d *delivery) closePast() {
	w := d.past
	if w == nil || w.at.Before(journal.Position{Seq: d.live.at.Seq}) ||
		slices.ContainsFunc(d.way, func(p *parcel) bool { return p.walk == w }) {
		return
	}
	if d.live.commit.position().Count < w.commit.position().Count {
		return
	}
	kept, err := d.log.Register(d.running, d.live.reader, journal.End)
	if err != nil || kept.Count < w.commit.position().Count || kept.Seq < w.filled.Seq {
		return // another time
	}
	w.halt()
	w.enough()
	if err := d.log.Unregister(d.running, w.reader); err != nil {
		d.logger.Warn("cannot end a walk through imports; it is tried again after a restart", zap.Error(err))
	}
	d.past = nil
}
