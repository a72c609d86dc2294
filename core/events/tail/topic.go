package tail

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
)

const (
	storeTimeout = 10 * time.Second // of one read
	firstWindow  = 1000             // rows before the first position that may become visible late
	maxLate      = 100              // late rows of one look
)

// topic is a project with viewers. Its goroutine alone uses the fields below the lists.
type topic struct {
	project int64
	wake    chan struct{} // holds one; receives when a viewer joins

	// Guarded by the Hub.
	viewers map[*viewer]struct{}
	joining []*viewer

	position int64 // rows up to it are read; -1 before the first read
	page     page
	window   window
	settled  time.Time // of the last look at late rows
	failing  bool
}

// run reads until the project has no viewers.
func (h *Hub) run(ctx context.Context, t *topic) {
	ctx = pools.With(ctx, pools.Management)
	for {
		begin := time.Now()
		full, err := h.poll(ctx, t)
		h.report(ctx, t, err)
		pause := h.times.Poll
		if full && err == nil { // at most half of the time is spent reading
			pause = min(pause, max(10*time.Millisecond, time.Since(begin)))
		}
		if !h.sleep(ctx, t, pause) {
			return
		}
	}
}

// sleep waits until the next poll is due or a viewer joins. It returns false at the end of
// ctx and, with the topic removed, without viewers.
func (h *Hub) sleep(ctx context.Context, t *topic, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-t.wake:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(t.viewers)+len(t.joining) > 0 {
		return true
	}
	delete(h.topics, t.project)
	return false
}

// poll offers what was stored since the last poll. It returns true if there is more.
func (h *Hub) poll(ctx context.Context, t *topic) (full bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if t.position < 0 {
		last, err := h.source.Last(ctx)
		if err != nil {
			return false, err
		}
		t.position = last
		t.window.start(last - firstWindow)
		if err := h.settle(ctx, t, nil); err != nil {
			t.position = -1
			return false, err
		}
	}
	if err := h.join(ctx, t); err != nil {
		return false, err
	}
	viewers := h.viewersOf(t)
	if len(viewers) == 0 {
		return false, nil
	}
	last, err := h.source.Last(ctx) // before the rows: all of the project up to it are read
	if err != nil || last == t.position {
		return false, cmp.Or(err, h.settleWhenDue(ctx, t, viewers))
	}
	limit := t.page.limit()
	rows, err := h.source.RecordsAfter(ctx, t.project, t.position, limit)
	if err != nil {
		return false, err
	}
	t.page.read(rows)
	if err := h.offer(ctx, t, viewers, rows); err != nil {
		return false, err
	}
	full = len(rows) == limit
	if full {
		return true, h.catchUp(ctx, t, viewers)
	}
	t.advance(last, viewers)
	return false, h.settleWhenDue(ctx, t, viewers)
}

// advance moves the position over rows of other projects. The window moves with it, so that
// neither the next read nor a look at late rows reads them again.
func (t *topic) advance(last int64, viewers []*viewer) {
	if last <= t.position {
		return
	}
	t.position = last
	t.window.add(last, time.Now())
	for _, v := range viewers {
		v.reach(last)
	}
}

func (h *Hub) settleWhenDue(ctx context.Context, t *topic, viewers []*viewer) error {
	if time.Since(t.settled) < h.times.Settle {
		return nil
	}
	return h.settle(ctx, t, viewers)
}

// offer sends rows behind the position to viewers.
func (h *Hub) offer(ctx context.Context, t *topic, viewers []*viewer, rows []events.Record) error {
	if len(rows) == 0 {
		return nil
	}
	if err := h.addPersons(ctx, viewers, rows); err != nil {
		return err
	}
	now := time.Now()
	list := make([]message, len(rows))
	for i := range rows {
		list[i] = message{record: &rows[i], id: max(t.position, rows[i].ID)}
		t.window.add(rows[i].ID, now)
	}
	t.position = list[len(list)-1].id
	for _, v := range viewers {
		h.metrics.offered(v.offer(ctx, list, t.position, h.view))
	}
	return nil
}

// addPersons reads the persons of the events if a viewer asks for them.
func (h *Hub) addPersons(ctx context.Context, viewers []*viewer, rows []events.Record) error {
	for _, v := range viewers {
		if v.filter.details {
			return h.source.AddPersons(ctx, rows, true)
		}
	}
	return nil
}

// catchUp moves the position to the end if it is too far behind, and counts what is left
// out.
func (h *Hub) catchUp(ctx context.Context, t *topic, viewers []*viewer) error {
	last, err := h.source.Last(ctx)
	if err != nil || last-t.position <= maxBehind {
		return err
	}
	n, err := h.source.CountBetween(ctx, t.project, t.position, last)
	if err != nil {
		return err
	}
	t.position = last
	t.window.start(last)
	for _, v := range viewers {
		v.skip(unread, n, last)
	}
	h.metrics.unread(n)
	return nil
}

// settle offers rows that became visible after later ones; without viewers it only notes
// them. It also finds the position again if the newest events were deleted.
func (h *Hub) settle(ctx context.Context, t *topic, viewers []*viewer) error {
	now := time.Now()
	t.settled = now
	last, err := h.source.Last(ctx)
	if err != nil {
		return err
	}
	if last < t.position { // SQLite uses the numbers of deleted rows again
		t.position = last
		t.window.start(last)
	}
	t.window.prune(now)
	rows, err := h.source.RowsBetween(ctx, t.project, t.window.begin, t.position, 2*windowRows)
	if err != nil {
		return err
	}
	late := t.window.missing(rows)
	if viewers == nil {
		for _, r := range late {
			t.window.add(r.ID, now)
		}
		return nil
	}
	var found []events.Record
	for _, r := range late[:min(len(late), maxLate)] {
		e, err := h.source.Record(ctx, t.project, r.UUID.String())
		switch {
		case fault.Is(err, fault.NotFound): // deleted meanwhile
			t.window.add(r.ID, now)
		case err != nil: // the next look tries all of them again
			return err
		default:
			found = append(found, e)
		}
	}
	return h.offer(ctx, t, viewers, found)
}

// report logs when reading begins to fail and when it works again.
func (h *Hub) report(ctx context.Context, t *topic, err error) {
	switch {
	case err != nil && !t.failing && ctx.Err() == nil:
		t.failing = true
		h.log.Warn("live events read failed: streams get no events", zap.Int64("project", t.project), zap.Error(err))
	case err == nil && t.failing:
		t.failing = false
		h.log.Info("live events read recovered", zap.Int64("project", t.project))
	}
}
