package ingestion

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// The bounds of what may be staged when the sink names none.
const (
	defaultStagedEvents = 100_000
	defaultStagedBytes  = 128 << 20
	defaultStagedAge    = time.Minute
)

// session tells which opening of the plugin answers; always 0 when the sink does
// not tell.
func (d *delivery) session() uint64 {
	if s, ok := d.sink.(interface{ Session() uint64 }); ok {
		return s.Session()
	}
	return 0
}

func (d *delivery) tellsSessions() bool {
	_, ok := d.sink.(interface{ Session() uint64 })
	return ok
}

// stage takes note of a parcel that the sink holds but has not made safe.
func (d *delivery) stage(p *parcel) {
	if p.torn || p.session != d.session() {
		d.rewound = true // the sink was opened anew in between
		return
	}
	if d.staged == 0 {
		d.since = time.Now()
	}
	d.staged += p.count
	d.heavy += p.bytes
	// If it has to be sent again, it is read again.
	p.release()
	d.tally.holds(d.staged, d.heavy, d.since)
}

func (d *delivery) unstage() {
	d.staged, d.heavy = 0, 0
	d.tally.holds(0, 0, time.Time{})
}

func (d *delivery) stagedAge() time.Duration {
	if age := least(d.own.Staged.MaxAge, d.sink.Properties().MaxStagedAge); age > 0 {
		return age
	}
	return defaultStagedAge
}

// due says why what is staged should be flushed now, or nothing.
func (d *delivery) due() sdk.FlushReason {
	if d.staged == 0 {
		return sdk.FlushUnspecified
	}
	p := d.sink.Properties()
	events, bytes := defaultStagedEvents, defaultStagedBytes
	if n := least(d.own.Staged.MaxEvents, p.MaxStagedEvents); n > 0 {
		events = n
	}
	if n := least(d.own.Staged.MaxBytes, p.MaxStagedBytes); n > 0 {
		bytes = n
	}
	switch {
	case d.staged >= events || d.heavy >= bytes || !d.tellsSessions():
		return sdk.FlushSize
	case time.Since(d.since) >= d.stagedAge():
		return sdk.FlushTimer
	}
	return sdk.FlushUnspecified
}

// lost reports whether the sink was opened anew since it staged something.
func (d *delivery) lost() bool {
	return len(d.way) > 0 && !d.way[0].flying && d.way[0].staged && d.way[0].session != d.session()
}

// lastSent is the highest number of those that are staged.
func (d *delivery) lastSent() (seq uint64) {
	for _, p := range d.way {
		if !p.flying && p.staged {
			seq = max(seq, p.lastSeq())
		}
	}
	return seq
}

// flush asks the sink to make what it staged safe. Whatever is not, is sent
// again.
func (d *delivery) flush(reason sdk.FlushReason) {
	d.tally.is("delivering")
	if d.lost() {
		d.rewound = true
		return
	}
	session := d.session()
	ctx, cancel := context.WithTimeout(d.living, d.cfg.Deliver.Timeout)
	result, err := d.sink.Flush(ctx, reason, d.lastSent())
	cancel()
	if err == nil && d.session() == session {
		err = d.buryStaged(result.Failures, result.CommittedThrough)
	} else if err == nil {
		err = sdk.Errorf(sdk.ClassTransient, "session_lost", "the plugin was opened anew while it flushed")
	}
	if err != nil {
		d.rewound = true
		d.unflushed(classified(sdk.AsError(err)))
		return
	}
	safe := 0
	for _, p := range d.way {
		if p.staged && !p.settled && p.lastSeq() <= result.CommittedThrough {
			p.settled = true
			safe += p.count
		}
	}
	d.delivered(safe)
	d.advance()
	d.rewound = slices.ContainsFunc(d.way, func(p *parcel) bool { return p.staged && !p.settled })
	d.unstage()
	if safe == 0 {
		d.unflushed(sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "the sink flushed and nothing became safe"))
		return
	}
	d.futile = 0
}

// unflushed takes note of a flush that made nothing safe, and waits a growing
// while: the journal keeps everything until one does.
func (d *delivery) unflushed(cause *sdk.Error) {
	d.futile++
	d.metrics.deliverFutile.WithLabelValues(d.sink.Name()).Inc()
	p := d.pauses()
	wait := d.trouble(cause, p)
	for i := 1; i < min(d.futile, 16); i++ {
		wait = max(wait, p.short.pause())
	}
	d.tally.failed("not_flushing", cause)
	sleep(d.running, wait)
}

// buryStaged sets aside the staged records that the sink could not make safe.
// Those that may work another time make the whole flush a failure.
func (d *delivery) buryStaged(failures []sdk.FlushFailure, through uint64) error {
	for _, f := range failures {
		if f.Err == nil || !hopeless(f.Err) {
			return sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "record %d was not made safe", f.Seq)
		}
	}
	for _, f := range failures {
		ev, err := d.find(f.Seq)
		if err != nil {
			return err
		}
		if ev == nil {
			d.logger.Error("a sink refused a record it was not sent", zap.Uint64("seq", f.Seq), zap.Uint64("committed_through", through))
			continue
		}
		if err := d.bury(ev, f.Seq, f.Err); err != nil {
			return err
		}
	}
	return nil
}

// find reads the staged event with this sequence number again; nil when there
// is none. It is as it was sent.
func (d *delivery) find(seq uint64) (*sdk.Event, error) {
	for _, p := range d.way {
		if p.count == 0 || seq < p.firstSeq || seq > p.lastSeq() || p.ids == nil {
			continue
		}
		id := p.ids[seq-p.firstSeq]
		f := newFeed(d.log, d.cfg.Limits, p.begin)
		f.wants = func(rec *event.Record) bool { return rec.Historical == p.walk.historical }
		for r := new(run); ; {
			r.reset(f.pos)
			if _, err := f.fill(d.living, r, 1000, maxBatchBytes); err != nil {
				return nil, err
			}
			for i := range r.events {
				if uuidBytes(r.events[i].UUID) == id {
					kept := d.rules.keep(r.events[i:i+1], time.Now(), func(string) {})
					if len(kept) == 1 {
						return &kept[0], nil
					}
				}
			}
			if r.empty() {
				return nil, nil
			}
		}
	}
	return nil, nil
}
