package ingestion

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
)

// Progress is how far the worker is behind what was accepted, and how fast it
// catches up.
type Progress struct {
	// State is current, catching_up, or waiting (for the database).
	State string `json:"state"`
	// RecordsBehind are requests in the journal that are not processed yet; a
	// record of the other lane counts until it is passed over.
	RecordsBehind int64 `json:"records_behind"`
	BytesBehind   int64 `json:"bytes_behind"`
	// OldestAt is when the first of them was accepted.
	OldestAt *time.Time `json:"oldest_at"`
	// RecordsPerSecond and EventsPerSecond are how fast it was in the last
	// seconds.
	RecordsPerSecond float64 `json:"records_per_second"`
	EventsPerSecond  float64 `json:"events_per_second"`
	// SecondsLeft is when it will have caught up if that goes on; null when
	// nobody can tell.
	SecondsLeft *float64 `json:"seconds_left"`
	// Waiting is why nothing moves.
	Waiting string `json:"waiting,omitempty"`
}

// The states of a Progress.
const (
	Current    = "current"
	CatchingUp = "catching_up"
	Waiting    = "waiting"
)

// How progress is measured.
const (
	progressPause = 500 * time.Millisecond
	progressSpan  = 5 * time.Second // over which a rate is measured
	// behindFor is how long the oldest record has to have waited before the
	// worker calls itself behind.
	behindFor = 5 * time.Second
	// progressLog is the time between two lines about a long backlog.
	progressLog = 10 * time.Second
)

// sample is where a lane was at a moment.
type sample struct {
	at     time.Time
	seq    uint64
	events uint64
}

// pace measures how fast a lane is, from the places it was at.
type pace struct{ samples []sample }

// add remembers a place and forgets those that are too old.
func (p *pace) add(s sample) {
	if n := len(p.samples); n > 0 && (s.seq < p.samples[n-1].seq || s.at.Before(p.samples[n-1].at)) {
		p.samples = p.samples[:0] // it reads again what it had read, or the clock was set
	}
	p.samples = append(p.samples, s)
	old := 0
	for old < len(p.samples)-2 && s.at.Sub(p.samples[old+1].at) >= progressSpan {
		old++
	}
	p.samples = append(p.samples[:0], p.samples[old:]...)
}

// rates returns records and events a second.
func (p *pace) rates() (records, events float64) {
	if len(p.samples) < 2 {
		return 0, 0
	}
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	d := last.at.Sub(first.at).Seconds()
	if d <= 0 {
		return 0, 0
	}
	return float64(last.seq-first.seq) / d, float64(last.events-first.events) / d
}

// Progress tells how the processing of events that are sent as they happen is
// doing, as of a moment ago.
func (w *Worker) Progress() Progress {
	if p := w.live.pacing.Load(); p != nil {
		return *p
	}
	return Progress{State: Current}
}

// HistoricalProgress tells the same of imports.
func (w *Worker) HistoricalProgress() Progress {
	if p := w.past.pacing.Load(); p != nil {
		return *p
	}
	return Progress{State: Current}
}

// pacer measures the lanes until ctx ends, and logs how a long backlog goes.
func (w *Worker) pacer(ctx context.Context) {
	for {
		if stats, err := w.log.Stats(ctx); err == nil {
			for _, l := range []*lane{w.live, w.past} {
				l.measure(stats, time.Now())
			}
		}
		if !sleep(ctx, progressPause) {
			return
		}
	}
}

// measure takes a sample and puts the lane's progress together.
func (l *lane) measure(stats journal.Stats, now time.Time) {
	status := *l.status.Load()
	l.pace.add(sample{now, status.Position.Seq, status.Position.Count})
	p := Progress{State: Current}
	p.RecordsPerSecond, p.EventsPerSecond = l.pace.rates()
	if status.Position.Seq < stats.Last {
		p.RecordsBehind = int64(stats.Last - max(status.Position.Seq, stats.First-1))
	}
	for _, r := range stats.Readers {
		if r.Name == l.reader && r.Lag > 0 && p.RecordsBehind > 0 {
			oldest := r.OldestAt.UTC()
			// The journal hears of the cursor a little late.
			p.OldestAt, p.BytesBehind = &oldest, r.Bytes
		}
	}
	switch {
	case status.Waiting != nil:
		p.State, p.Waiting = Waiting, publicCause(status.Waiting)
	case p.OldestAt != nil && now.Sub(*p.OldestAt) > behindFor:
		p.State = CatchingUp
	}
	if p.RecordsPerSecond > 0 && p.RecordsBehind > 0 {
		left := float64(p.RecordsBehind) / p.RecordsPerSecond
		p.SecondsLeft = &left
	}
	l.pacing.Store(&p)
	l.tell(&p, now)
}

// publicCause is what may be read by everybody about why nothing moves.
func publicCause(err error) string {
	if c := codeOf(err); c != "error" {
		return c
	}
	return "the last batch failed and is tried again"
}

// tell logs the beginning, the course and the end of a long backlog.
func (l *lane) tell(p *Progress, now time.Time) {
	behind := p.State == CatchingUp
	fields := func() []zap.Field {
		out := []zap.Field{
			zap.Int64("records_behind", p.RecordsBehind), zap.Int64("bytes_behind", p.BytesBehind),
			zap.Float64("records_per_second", p.RecordsPerSecond), zap.Float64("events_per_second", p.EventsPerSecond),
		}
		if p.SecondsLeft != nil {
			out = append(out, zap.Float64("seconds_left", *p.SecondsLeft))
		}
		return out
	}
	switch {
	case behind && l.behindSince.IsZero():
		l.behindSince, l.toldAt = now, now
		l.logger.Info("catching up with what was accepted before", fields()...)
	case behind && now.Sub(l.toldAt) >= progressLog:
		l.toldAt = now
		l.logger.Info("still catching up", fields()...)
	case p.State == Current && !l.behindSince.IsZero():
		l.logger.Info("caught up", zap.Duration("took", now.Sub(l.behindSince)))
		l.behindSince = time.Time{}
	}
}
