package notifications

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Post is one message that an action wants to send.
type Post struct {
	ProjectID   int64
	ActionID    int64
	Notifier    string
	Destination string
	Format      string         // "" is the action's
	Location    *time.Location // of the project, for quiet hours
	Event       *sdk.Event
	Message     func() Message // made when it is needed
}

// filing queues the messages of one transaction. It keeps the rates it has
// read, so that a thousand events that fit one action read and write its rate
// once.
type filing struct {
	*Service
	rates map[rateKey]*rateRow
}

type rateKey struct {
	action int64
	lane
}

func (s *Service) filing() *filing { return &filing{s, map[rateKey]*rateRow{}} }

func (f *filing) rate(ctx context.Context, p *Post, now time.Time) (*rateRow, error) {
	k := rateKey{p.ActionID, lane{p.Notifier, p.Destination}}
	if r := f.rates[k]; r != nil {
		return r, nil
	}
	r, err := f.store.rate(ctx, p.ActionID, k.lane, p.ProjectID, f.cfg.Burst, now)
	if err == nil {
		f.rates[k] = r
	}
	return r, err
}

// save writes the rates back.
func (f *filing) save(ctx context.Context) error {
	for _, r := range f.rates {
		if err := f.store.saveRate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// enqueue writes a message into the queue, or counts it as left out. It works
// in the transaction of ctx.
func (f *filing) enqueue(ctx context.Context, p *Post) error {
	now := f.clock()
	r, err := f.rate(ctx, p, now)
	if err != nil {
		return err
	}
	key := keyOf(p.ActionID, p.Notifier, p.Destination, p.Format, p.Event)
	if r.Key == key && r.Suppressed > 0 {
		return nil // the same event once more
	}
	message, err := json.Marshal(p.Message())
	if err != nil {
		return err
	}
	quietEnd := f.quiet.until(now.In(p.Location))
	r.refill(now, f.cfg.Every, f.cfg.Burst)
	if r.Tokens < 1 || !quietEnd.IsZero() {
		r.leaveOut(key, p.Event.UUID, string(message), max(now.Add(r.wait(f.cfg.Every)).UnixMicro(), microsOf(quietEnd)))
		f.metrics.suppressed.Inc()
		return nil
	}
	d := &Delivery{
		ProjectID: p.ProjectID, ActionID: p.ActionID, Notifier: p.Notifier, Destination: p.Destination, Key: key, EventUUID: p.Event.UUID,
		Message: message, Suppressed: r.Suppressed, NextAt: now, CreatedAt: now, ExpiresAt: now.Add(f.cfg.ExpireAfter),
	}
	added, err := f.store.add(ctx, d)
	if err != nil || !added {
		return err // or the same event once more, which costs nothing
	}
	r.spend()
	f.store.db.AfterCommit(ctx, f.wake)
	return nil
}

func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// leaveOut counts a message that does not go out by itself, and keeps it as
// the one that may be told later.
func (r *rateRow) leaveOut(key, eventUUID, message string, due int64) {
	r.Suppressed++
	r.Key, r.EventUUID, r.Message, r.DueAt = key, eventUUID, message, due
}

// spend takes one message; it tells of those left out before.
func (r *rateRow) spend() {
	r.Tokens = max(r.Tokens-1, 0)
	r.Suppressed, r.DueAt, r.Key, r.EventUUID, r.Message = 0, 0, "", "", ""
}

// refill gives what time has earned.
func (r *rateRow) refill(now time.Time, every time.Duration, burst int) {
	passed := max(now.Sub(micros(r.At)), 0) // a clock that went back earns nothing
	r.At = now.UnixMicro()
	if every <= 0 {
		r.Tokens = math.Inf(1)
	} else {
		r.Tokens = min(r.Tokens+float64(passed)/float64(every), float64(burst))
	}
	if math.IsInf(r.Tokens, 1) || math.IsNaN(r.Tokens) {
		r.Tokens = float64(burst)
	}
}

// wait is how long until one message may go.
func (r *rateRow) wait(every time.Duration) time.Duration {
	return time.Duration(max(1-r.Tokens, 0) * float64(every))
}

// tellLeftOut queues a message for what was left out and may be told now: the
// latest of it, with how many more there were.
func (s *Service) tellLeftOut(ctx context.Context) error {
	rows, err := s.store.overdue(ctx, s.clock(), 100)
	if err != nil {
		return err
	}
	for i := range rows {
		seen := &rows[i]
		err := s.store.db.Tx(ctx, func(ctx context.Context) error {
			now := s.clock()
			r, err := s.store.rate(ctx, seen.ActionID, lane{seen.Notifier, seen.Destination}, seen.ProjectID, s.cfg.Burst, now)
			if err != nil || r.Suppressed == 0 || r.DueAt > now.UnixMicro() {
				return err // somebody else was faster
			}
			if _, loc := s.deps.Projects.Project(ctx, r.ProjectID); !s.quiet.until(now.In(loc)).IsZero() {
				r.DueAt = s.quiet.until(now.In(loc)).UnixMicro() // left out before the quiet hours, due in them
				return s.store.saveRate(ctx, r)
			}
			r.refill(now, s.cfg.Every, s.cfg.Burst)
			d := &Delivery{
				ProjectID: r.ProjectID, ActionID: r.ActionID, Notifier: r.Notifier, Destination: r.Destination, Key: r.Key, EventUUID: r.EventUUID,
				Message: json.RawMessage(r.Message), Suppressed: r.Suppressed - 1, NextAt: now, CreatedAt: now, ExpiresAt: now.Add(s.cfg.ExpireAfter),
			}
			r.spend()
			if _, err := s.store.add(ctx, d); err != nil {
				return err
			}
			s.store.db.AfterCommit(ctx, s.wake)
			return s.store.saveRate(ctx, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
