package notifications

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// queue adds notifications to the durable queue and limits their rate.
type queue struct{ *base }

// Post is a message that an action sends if its rate permits.
type Post struct {
	ProjectID   int64
	ActionID    int64
	Notifier    string
	Destination string
	Format      string         // "" is the action's
	Location    *time.Location // of the project, for quiet hours
	Event       *sdk.Event
	Message     func(ctx context.Context) Message // renders the message when it is needed

	origin tracing.Origin // of the request that sent the event

	key  string  // identifies the message
	rate rateKey // the rate that limits it
}

// identify sets the key and the rate of the post.
func (p *Post) identify() *Post {
	p.key = keyOf(p.ActionID, p.Notifier, p.Destination, p.Format, p.Event)
	p.rate = rateKey{p.ActionID, lane{p.Notifier, p.Destination}, formatKey(p.Format)}
	return p
}

// rateKey identifies a rate: an action, a destination, and the format for it.
type rateKey struct {
	action int64
	lane
	format string
}

func (k rateKey) compare(o rateKey) int {
	return cmp.Or(cmp.Compare(k.action, o.action), cmp.Compare(k.Notifier, o.Notifier), cmp.Compare(k.Destination, o.Destination),
		cmp.Compare(k.format, o.format))
}

// add queues posts in the transaction of ctx: those within their rate as
// notifications; of the others it keeps the latest and their number.
func (s *queue) add(ctx context.Context, posts []*Post) error {
	posts, err := s.filterKnown(ctx, posts)
	if err != nil || len(posts) == 0 {
		return err
	}
	now := s.clock()
	rates, err := s.loadRates(ctx, posts, now)
	if err != nil {
		return err
	}
	for _, p := range posts {
		if err := s.enqueue(ctx, p, rates[p.rate], now); err != nil {
			return err
		}
	}
	for _, r := range rates {
		if r.latest != nil {
			message, err := json.Marshal(r.latest.Message(ctx))
			if err != nil {
				return err
			}
			r.Key, r.EventUUID, r.Message = r.latest.key, r.latest.Event.UUID, string(message)
		}
		if err := s.store.saveRate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// filterKnown leaves out posts that were queued before and duplicates among
// posts: clients send events again.
func (s *queue) filterKnown(ctx context.Context, posts []*Post) ([]*Post, error) {
	keys := make([]string, len(posts))
	for i, p := range posts {
		keys[i] = p.key
	}
	known, err := s.store.knownKeys(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []*Post
	for i, p := range posts {
		if !known[keys[i]] {
			out = append(out, p)
		}
		known[keys[i]] = true
	}
	return out, nil
}

// loadRates reads the rates of all posts, in the order in which every process
// locks them.
func (s *queue) loadRates(ctx context.Context, posts []*Post, now time.Time) (map[rateKey]*rateRow, error) {
	projects := map[rateKey]int64{}
	var keys []rateKey
	for _, p := range posts {
		k := p.rate
		if _, ok := projects[k]; !ok {
			keys = append(keys, k)
		}
		projects[k] = p.ProjectID
	}
	slices.SortFunc(keys, rateKey.compare)
	out := make(map[rateKey]*rateRow, len(keys))
	for _, k := range keys {
		r, err := s.store.rate(ctx, k, projects[k], s.live.Load().Burst, now)
		if err != nil {
			return nil, err
		}
		out[k] = r
	}
	return out, nil
}

// enqueue writes a notification into the queue, or counts it as suppressed.
func (s *queue) enqueue(ctx context.Context, p *Post, r *rateRow, now time.Time) error {
	if r.Key == p.key && r.Suppressed > 0 {
		return nil // a duplicate event
	}
	quietEnd := s.quiet.until(now.In(p.Location))
	r.refill(now, s.live.Load().Every, s.live.Load().Burst)
	if r.Tokens < 1 || !quietEnd.IsZero() {
		r.suppress(p, max(now.Add(r.wait(s.live.Load().Every)).UnixMicro(), microsOf(quietEnd)))
		s.metrics.suppressed.Inc()
		return nil
	}
	m := p.Message(ctx)
	message, err := json.Marshal(m)
	if err != nil {
		return err
	}
	added, err := s.store.add(ctx, &Delivery{
		ProjectID: p.ProjectID, ActionID: p.ActionID, Notifier: p.Notifier, Destination: p.Destination, Key: p.key, EventUUID: p.Event.UUID,
		Text: m.Text, Message: message, Suppressed: r.Suppressed, NextAt: now, CreatedAt: now, ExpiresAt: now.Add(s.live.Load().ExpireAfter),
		Origin: p.origin,
	})
	if err != nil || !added {
		return err // or another process queued it
	}
	r.spend()
	s.store.db.AfterCommit(ctx, s.wake)
	return nil
}

func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// suppress counts a suppressed message and keeps it for the summary.
func (r *rateRow) suppress(p *Post, due int64) {
	r.Suppressed++
	r.latest, r.DueAt = p, due
}

// spend takes a token for a message, which reports the suppressed ones.
func (r *rateRow) spend() {
	r.Tokens = max(r.Tokens-1, 0)
	r.Suppressed, r.DueAt, r.Key, r.EventUUID, r.Message, r.latest = 0, 0, "", "", "", nil
}

// refill adds the tokens of the passed time.
func (r *rateRow) refill(now time.Time, every time.Duration, burst int) {
	passed := max(now.Sub(fromMicros(r.At)), 0) // a clock that went back adds no tokens
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

// wait is the time until the next token.
func (r *rateRow) wait(every time.Duration) time.Duration {
	return time.Duration(max(1-r.Tokens, 0) * float64(every))
}

// queueSummaries queues a notification for suppressed ones whose summary is
// due: the latest of them, with the number of the others.
func (s *queue) queueSummaries(ctx context.Context) error {
	rows, err := s.store.overdue(ctx, s.clock(), 100)
	if err != nil {
		return err
	}
	for i := range rows {
		seen := &rows[i]
		posts, err := s.isPosting(ctx, seen.ProjectID, seen.ActionID)
		if err != nil {
			return err
		}
		_, loc := s.project(ctx, seen.ProjectID)
		err = s.store.db.Tx(ctx, func(ctx context.Context) error { return s.queueSummary(ctx, seen, posts, loc) })
		if err != nil {
			return err
		}
	}
	return nil
}

// isPosting reports whether the action exists and posts.
func (s *base) isPosting(ctx context.Context, projectID, actionID int64) (bool, error) {
	a, err := s.deps.Actions.Action(ctx, projectID, actionID)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return a.Posts(), nil
}

// queueSummary queues the summary of one rate, in the transaction of ctx. An
// action that does not post any more gets none.
func (s *queue) queueSummary(ctx context.Context, seen *rateRow, posts bool, loc *time.Location) error {
	now := s.clock()
	k := rateKey{seen.ActionID, lane{seen.Notifier, seen.Destination}, seen.Format}
	r, err := s.store.rate(ctx, k, seen.ProjectID, s.live.Load().Burst, now)
	if err != nil || r.Suppressed == 0 || r.DueAt > now.UnixMicro() {
		return err // or another process queued it
	}
	if end := s.quiet.until(now.In(loc)); posts && !end.IsZero() {
		r.DueAt = end.UnixMicro() // suppressed before the quiet hours, due in them
		return s.store.saveRate(ctx, r)
	}
	r.refill(now, s.live.Load().Every, s.live.Load().Burst)
	if posts {
		var m Message
		_ = json.Unmarshal([]byte(r.Message), &m) // an unreadable message has no text
		// A key of its own: the message of the event itself may exist.
		_, err = s.store.add(ctx, &Delivery{
			ProjectID: r.ProjectID, ActionID: r.ActionID, Notifier: r.Notifier, Destination: r.Destination, Key: r.Key + "+", EventUUID: r.EventUUID,
			Text: m.Text, Message: json.RawMessage(r.Message), Suppressed: r.Suppressed - 1,
			NextAt: now, CreatedAt: now, ExpiresAt: now.Add(s.live.Load().ExpireAfter),
		})
		if err != nil {
			return err
		}
		s.store.db.AfterCommit(ctx, s.wake)
	}
	r.spend()
	return s.store.saveRate(ctx, r)
}
