package scan

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Limiter has the places of scans. It is safe for concurrent use.
type Limiter struct {
	cfg     Config
	metrics *metrics
	parts   chan struct{} // tokens of the parts that share a place, without its first one

	mu     sync.Mutex
	free   int
	behind int // running scans in the background
	queues map[queueKey]*queue
	order  []*queue // those with waiting scans, in the order of their turns
}

// queueKey identifies a queue: scans of requests of a project, or its scans in the
// background.
type queueKey struct {
	project    int64
	background bool
}

// queue is the scans of one key that wait and their running ones.
type queue struct {
	key     queueKey
	running int
	waiting []chan struct{} // closed when the scan gets its place
}

// New returns a limiter without metrics; see Register.
func New(cfg Config) *Limiter {
	cfg = cfg.WithPlaces()
	return &Limiter{
		cfg: cfg, metrics: newMetrics(), parts: make(chan struct{}, MaxParts()-1), free: cfg.Places, queues: map[queueKey]*queue{},
	}
}

// Begin waits for a place for a scan of a request. It returns the context of the
// scan and what ends it, which must be called. It fails with an Unavailable fault
// if the queue of the project is full or the wait is over, and with the error of
// ctx. If ctx is that of a scan, Begin returns at once: a part of a scan uses the
// place of the scan.
func (l *Limiter) Begin(ctx context.Context, project int64) (context.Context, func(), error) {
	return l.begin(ctx, queueKey{project, false})
}

// BeginBackground is Begin for a scan that no request waits for: it waits until ctx
// ends.
func (l *Limiter) BeginBackground(ctx context.Context, project int64) (context.Context, func(), error) {
	return l.begin(ctx, queueKey{project, true})
}

func (l *Limiter) begin(ctx context.Context, key queueKey) (context.Context, func(), error) {
	if p := placeOf(ctx); p != nil && p.limiter == l {
		return ctx, func() {}, nil
	}
	if s := shareOf(ctx); s != nil && key.background {
		return s.begin(ctx, l, key)
	}
	p, err := l.beginPlace(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	return withPlace(ctx, p), p.release, nil
}

// beginPlace waits for a place.
func (l *Limiter) beginPlace(ctx context.Context, key queueKey) (*place, error) {
	waited, err := l.acquire(ctx, key, !key.background)
	if err != nil {
		return nil, err
	}
	l.metrics.waited.Observe(waited.Seconds())
	addWait(ctx, waited)
	p := &place{limiter: l, key: key}
	p.restart()
	return p, nil
}

// ErrBusy is the refusal of a scan that got no place in time.
var ErrBusy = fault.New(fault.Unavailable, "too_many_searches",
	"Too many searches and counts run or wait. Try again later.")

// minRetry is the least time after which a refused client tries again.
const minRetry = time.Second

func (l *Limiter) refusal(reason string) error {
	l.metrics.refused[reason].Inc()
	return ErrBusy.After(max(minRetry, l.cfg.MaxWait/2))
}

// acquire waits for a place and returns how long. limited applies the limits of
// scans of requests.
func (l *Limiter) acquire(ctx context.Context, key queueKey, limited bool) (time.Duration, error) {
	start := time.Now()
	l.mu.Lock()
	q := l.queues[key]
	if q == nil {
		q = &queue{key: key}
		l.queues[key] = q
	}
	if l.free > 0 && l.mayStart(key) { // then no scan waits that may start
		l.start(q)
		l.mu.Unlock()
		return 0, nil
	}
	if limited && len(q.waiting) >= l.cfg.Queue {
		l.forget(q)
		l.mu.Unlock()
		return 0, l.refusal(refusedQueue)
	}
	turn := make(chan struct{})
	if q.waiting = append(q.waiting, turn); len(q.waiting) == 1 {
		l.order = append(l.order, q)
	}
	l.mu.Unlock()
	l.metrics.waiting.Inc()
	defer l.metrics.waiting.Dec()
	var limit <-chan time.Time
	if limited {
		timer := time.NewTimer(l.cfg.MaxWait)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-turn:
		return time.Since(start), nil
	case <-ctx.Done():
		return 0, l.giveUp(q, turn, ctx.Err())
	case <-limit:
		return 0, l.giveUp(q, turn, nil)
	}
}

// giveUp ends the wait of a scan. cause is nil if its time is over. A place that it
// got meanwhile goes to another scan.
func (l *Limiter) giveUp(q *queue, turn chan struct{}, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	removed := false
	for i, w := range q.waiting {
		if w == turn {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			removed = true
			break
		}
	}
	if removed {
		l.dropIfEmpty(q)
		l.forget(q)
	} else {
		l.end(q)
	}
	if cause != nil {
		return cause
	}
	return l.refusal(refusedWait)
}

// release frees a place of q and gives it to the next scan.
func (l *Limiter) release(key queueKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(l.queues[key])
}

// mayStart reports whether a free place may go to a scan of key: one place of
// several is kept for requests.
func (l *Limiter) mayStart(key queueKey) bool {
	return !key.background || l.behind < max(1, l.cfg.Places-1)
}

func (l *Limiter) start(q *queue) {
	l.free--
	q.running++
	if q.key.background {
		l.behind++
	}
}

func (l *Limiter) end(q *queue) {
	if q.key.background {
		l.behind--
	}
	q.running--
	l.free++
	l.startNext()
	l.forget(q)
}

// startNext gives the free places to waiting scans: those of the queue with the
// fewest running scans first, and of equal ones that whose turn was longest ago.
func (l *Limiter) startNext() {
	for l.free > 0 {
		next := -1
		for i, q := range l.order {
			if l.mayStart(q.key) && (next < 0 || q.running < l.order[next].running) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		q := l.order[next]
		l.order = append(l.order[:next], l.order[next+1:]...)
		turn := q.waiting[0]
		if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
			l.order = append(l.order, q)
		}
		l.start(q)
		close(turn)
	}
}

// dropIfEmpty removes q from the order if no scan of it waits.
func (l *Limiter) dropIfEmpty(q *queue) {
	if len(q.waiting) > 0 {
		return
	}
	for i := range l.order {
		if l.order[i] == q {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

// forget removes a queue without scans.
func (l *Limiter) forget(q *queue) {
	if q.running == 0 && len(q.waiting) == 0 {
		delete(l.queues, q.key)
	}
}

// othersWait reports whether scans wait for a place.
func (l *Limiter) othersWait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.order) > 0
}

// Running returns how many scans run and how many wait.
func (l *Limiter) Running() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		waiting += len(q.waiting)
	}
	return l.cfg.Places - l.free, waiting
}
