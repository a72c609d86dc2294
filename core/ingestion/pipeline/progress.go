package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// Progress is the backlog of a lane and how fast it shrinks.
type Progress struct {
	// State is current, catching_up, or waiting (for the database).
	State string `json:"state"`
	// RecordsBehind counts the requests in the journal that are not processed. A
	// record of the other lane counts until the lane has skipped it.
	RecordsBehind int64 `json:"records_behind"`
	BytesBehind   int64 `json:"bytes_behind"`
	// OldestAt is when the first of them was accepted.
	OldestAt *time.Time `json:"oldest_at"`
	// RecordsPerSecond and EventsPerSecond are the rates of the last seconds.
	RecordsPerSecond float64 `json:"records_per_second"`
	EventsPerSecond  float64 `json:"events_per_second"`
	// SecondsLeft is the time until the backlog is empty at this rate; null when
	// it is unknown.
	SecondsLeft *float64 `json:"seconds_left"`
	// Waiting is why the lane makes no progress.
	Waiting string `json:"waiting,omitempty"`
}

// The states of a Progress.
const (
	Current    = "current"
	CatchingUp = "catching_up"
	Waiting    = "waiting"
)

const (
	sampleInterval = 500 * time.Millisecond
	rateSpan       = 5 * time.Second // over which a rate is measured
	// behindAfter is how long the oldest record must wait before the lane counts
	// as behind.
	behindAfter = 5 * time.Second
	// backlogLogInterval is the time between two log lines of a long backlog.
	backlogLogInterval = 10 * time.Second
)

// sample is the position of a lane at a time.
type sample struct {
	at     time.Time
	seq    uint64
	events uint64
}

// rateMeter computes the rate of a lane from samples of its position.
type rateMeter struct{ samples []sample }

// add adds a sample and removes those before rateSpan.
func (m *rateMeter) add(s sample) {
	if n := len(m.samples); n > 0 && (s.seq < m.samples[n-1].seq || s.at.Before(m.samples[n-1].at)) {
		m.samples = m.samples[:0] // the lane went back, or the clock was set
	}
	m.samples = append(m.samples, s)
	old := 0
	for old < len(m.samples)-2 && s.at.Sub(m.samples[old+1].at) >= rateSpan {
		old++
	}
	m.samples = append(m.samples[:0], m.samples[old:]...)
}

// rates returns records and events per second.
func (m *rateMeter) rates() (records, events float64) {
	if len(m.samples) < 2 {
		return 0, 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	d := last.at.Sub(first.at).Seconds()
	if d <= 0 {
		return 0, 0
	}
	return float64(last.seq-first.seq) / d, float64(last.events-first.events) / d
}

// monitorLag measures both lanes until ctx ends.
func (w *Worker) monitorLag(ctx context.Context) {
	for {
		if stats, err := w.log.Stats(ctx); err == nil {
			for _, l := range []*lane{w.live, w.historical} {
				status := *l.status.Load()
				status.Position = l.reached()
				l.lag.measure(status, stats, time.Now())
			}
		}
		if !retry.SleepAligned(ctx, sampleInterval) {
			return
		}
	}
}

// lagMonitor measures the backlog of a lane and logs a long one.
type lagMonitor struct {
	reader string
	logger *zap.Logger

	meter       rateMeter
	behindSince time.Time
	loggedAt    time.Time
	latest      atomic.Pointer[Progress]
}

// progress returns the latest measurement.
func (l *lagMonitor) progress() Progress {
	if p := l.latest.Load(); p != nil {
		return *p
	}
	return Progress{State: Current}
}

// measure takes a sample and publishes the lane's progress.
func (l *lagMonitor) measure(status Status, stats journal.Stats, now time.Time) {
	l.meter.add(sample{now, status.Position.Seq, status.Position.Count})
	p := Progress{State: Current}
	p.RecordsPerSecond, p.EventsPerSecond = l.meter.rates()
	if status.Position.Seq < stats.Last {
		p.RecordsBehind = int64(stats.Last - max(status.Position.Seq, stats.First-1))
	}
	for _, r := range stats.Readers {
		if r.Name == l.reader && r.Lag > 0 && p.RecordsBehind > 0 {
			oldest := r.OldestAt.UTC()
			// The cursor in the journal is a little behind the lane.
			p.OldestAt, p.BytesBehind = &oldest, r.Bytes
		}
	}
	switch {
	case status.Waiting != nil:
		p.State, p.Waiting = Waiting, PublicReason(status.Waiting)
	case p.OldestAt != nil && now.Sub(*p.OldestAt) > behindAfter:
		p.State = CatchingUp
	}
	if p.RecordsPerSecond > 0 && p.RecordsBehind > 0 {
		left := float64(p.RecordsBehind) / p.RecordsPerSecond
		p.SecondsLeft = &left
	}
	l.latest.Store(&p)
	l.logBacklog(&p, now)
}

// PublicReason returns why a lane makes no progress, without details that only
// operators may read.
func PublicReason(err error) string {
	if c := fault.CodeOf(err); c != "error" {
		return c
	}
	return "the last batch failed and is tried again"
}

// logBacklog logs the beginning, the course and the end of a long backlog.
func (l *lagMonitor) logBacklog(p *Progress, now time.Time) {
	behind := p.State == CatchingUp
	switch {
	case behind && l.behindSince.IsZero():
		l.behindSince, l.loggedAt = now, now
		l.logger.Info("catching up with the journal", backlogFields(p)...)
	case behind && now.Sub(l.loggedAt) >= backlogLogInterval:
		l.loggedAt = now
		l.logger.Info("still catching up with the journal", backlogFields(p)...)
	case p.State == Current && !l.behindSince.IsZero():
		l.logger.Info("caught up with the journal", zap.Duration("took", now.Sub(l.behindSince)))
		l.behindSince = time.Time{}
	}
}

func backlogFields(p *Progress) []zap.Field {
	out := []zap.Field{
		zap.Int64("records_behind", p.RecordsBehind), zap.Int64("bytes_behind", p.BytesBehind),
		zap.Float64("records_per_second", p.RecordsPerSecond), zap.Float64("events_per_second", p.EventsPerSecond),
	}
	if p.SecondsLeft != nil {
		out = append(out, zap.Float64("seconds_left", *p.SecondsLeft))
	}
	return out
}
