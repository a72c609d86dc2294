// Package schedule makes backups at an interval or at times of the day, removes old
// ones and reports their age.
//
// A backup is due after the newest one in the place, so that a restart delays none, and
// a time at which the server did not run is made up for at its start. A failed backup is
// retried with growing pauses. Only files with generated names are removed: one place
// belongs to one server.
package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Backup is a backup that exists.
type Backup struct {
	Name  string
	At    time.Time
	Bytes int64
}

// Maker makes, lists and removes backups.
type Maker interface {
	// Make writes a backup.
	Make(ctx context.Context) (Backup, error)
	// List returns the backups that Make has written.
	List(ctx context.Context) ([]Backup, error)
	Remove(ctx context.Context, name string) error
	// Clean removes what interrupted backups left.
	Clean(ctx context.Context) error
}

// Options are the options of a Scheduler.
type Options struct {
	Times Times
	Keep  Retention
	// RetryMin and RetryMax bound the pauses after failures.
	RetryMin, RetryMax time.Duration
	// Made is called after each backup; it may be nil.
	Made func(ctx context.Context, b Backup) error
}

// DefaultRetryMin and DefaultRetryMax are the pauses after failures.
const (
	DefaultRetryMin = 30 * time.Second
	DefaultRetryMax = 15 * time.Minute
)

// Scheduler makes backups between Start and Stop. Its other methods may be called
// concurrently.
type Scheduler struct {
	o       Options
	maker   Maker
	log     *zap.Logger
	metrics *metrics
	service retry.Service

	mu      sync.Mutex
	started time.Time
	last    Backup // the newest good one; zero without one
	failed  error  // of the last attempt
	running bool
}

// New returns a Scheduler that has not started.
func New(o Options, m Maker, log *zap.Logger) *Scheduler {
	s := &Scheduler{o: o, maker: m, log: log.Named("backup"), started: time.Now()}
	s.metrics = newMetrics(s)
	return s
}

// Start begins to make backups.
func (s *Scheduler) Start(context.Context) error {
	if s.o.Times.Enabled() {
		s.service.Start()
		s.service.Go(func(drainCtx, _ context.Context) { s.run(drainCtx) })
	}
	return nil
}

// Stop ends a backup in progress, which leaves no file.
func (s *Scheduler) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

func (s *Scheduler) run(ctx context.Context) {
	backoff := retry.Backoff{Min: s.o.RetryMin, Max: s.o.RetryMax}
	ok := retry.Until(ctx, backoff, func() error { return s.find(ctx) }, s.setFailed)
	for ok && s.wait(ctx) {
		s.clean(ctx)
		ok = retry.Until(ctx, backoff, func() error { return s.once(ctx) }, s.setFailed)
		if ok {
			s.removeOld(ctx)
		}
	}
}

// find loads the newest backup that exists. It ends the state of an earlier failure.
func (s *Scheduler) find(ctx context.Context) error {
	list, err := s.list(ctx)
	if err != nil {
		return fmt.Errorf("list the backups: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = nil
	if len(list) > 0 {
		s.last = list[0]
	}
	return nil
}

// list returns the backups, the newest first.
func (s *Scheduler) list(ctx context.Context) ([]Backup, error) {
	list, err := s.maker.List(ctx)
	slices.SortFunc(list, func(a, b Backup) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Name, a.Name)) })
	return list, err
}

// next returns when the next backup is due.
func (s *Scheduler) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.At.IsZero() || s.last.At.After(time.Now()) { // a clock that was ahead delays none
		return s.started
	}
	return s.o.Times.next(s.last.At)
}

// longestWait bounds a wait, since the clock may be set and machines sleep.
const longestWait = time.Minute

// wait waits until the next backup is due. It returns false when ctx ends first.
func (s *Scheduler) wait(ctx context.Context) bool {
	for {
		left := time.Until(s.next())
		if !retry.Sleep(ctx, min(left, longestWait)) {
			return false
		}
		if left <= longestWait {
			return true
		}
	}
}

func (s *Scheduler) once(ctx context.Context) error {
	s.setRunning(true)
	defer s.setRunning(false)
	begin := time.Now()
	s.log.Info("backup started")
	made, err := s.maker.Make(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	s.mu.Lock()
	s.last, s.failed = made, nil
	s.mu.Unlock()
	s.metrics.made(took)
	s.log.Info("backup written", zap.String("name", made.Name), zap.Int64("bytes", made.Bytes), zap.Duration("took", took.Round(time.Millisecond)))
	if s.o.Made != nil {
		if err := s.o.Made(ctx, made); err != nil {
			s.log.Warn("activity log write failed: backup", zap.String("name", made.Name), zap.Error(err))
		}
	}
	return nil
}

func (s *Scheduler) setRunning(running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
}

func (s *Scheduler) setFailed(err error) {
	s.mu.Lock()
	s.failed = err
	s.mu.Unlock()
	s.metrics.failed()
	s.log.Error("backup failed; retrying", zap.Error(err))
}

// clean removes what interrupted backups left.
func (s *Scheduler) clean(ctx context.Context) {
	if err := s.maker.Clean(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("incomplete backups not removed", zap.Error(err))
	}
}

// removeOld removes the backups that are not kept.
func (s *Scheduler) removeOld(ctx context.Context) {
	list, err := s.list(ctx)
	if err != nil {
		s.log.Warn("old backups not removed", zap.Error(err))
		return
	}
	for _, old := range s.o.Keep.expired(list) {
		if err := s.maker.Remove(ctx, old.Name); err != nil {
			s.log.Warn("old backup not removed", zap.String("name", old.Name), zap.Error(err))
			continue
		}
		s.log.Info("old backup removed", zap.String("name", old.Name))
	}
}

// State describes the backups of a server.
type State struct {
	// State is "off" without backups by the server, "ok", "failing" after a failed
	// attempt, or "overdue" when the newest backup is older than two intervals.
	State string `json:"state"`
	// LastAt, LastName and LastBytes describe the newest good backup.
	LastAt    *time.Time `json:"last_at,omitempty"`
	LastName  string     `json:"last_name,omitempty"`
	LastBytes int64      `json:"last_bytes,omitempty"`
	Running   bool       `json:"running"`
	Error     string     `json:"error,omitempty"` // of the last attempt
}

// Degraded implements the interface of core/web/health.
func (s State) Degraded() bool { return s.State == "failing" || s.State == "overdue" }

// State returns the state of the backups.
func (s *Scheduler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.o.Times.Enabled() {
		return State{State: "off"}
	}
	out := State{State: "ok", Running: s.running}
	reference := s.started
	if !s.last.At.IsZero() {
		at := s.last.At.UTC()
		reference, out.LastAt, out.LastName, out.LastBytes = at, &at, s.last.Name, s.last.Bytes
	}
	if s.failed != nil {
		out.State, out.Error = "failing", s.failed.Error()
	}
	if time.Since(reference) > 2*s.o.Times.Longest() {
		out.State = "overdue"
	}
	return out
}
