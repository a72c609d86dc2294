package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

// aloneToken is the token of all leases of a single node.
const aloneToken = 1

// restartPause is the pause before a job that returned early runs again.
const restartPause = time.Second

// drainGrace is the least time that a drain has, when it shares its time.
const drainGrace = time.Second

// Single is a Member that owns everything. It uses no database.
type Single struct {
	Info Info // for Status; optional

	mu        sync.Mutex
	names     map[string]bool // of the leases
	stops     []func(ctx context.Context)
	announced map[string][]string
	drained   bool
	ctx       context.Context // of the jobs
	cancel    context.CancelFunc
	jobs      sync.WaitGroup
}

var _ Member = (*Single)(nil)

// Alone returns the Member of a single node. It needs no start.
func Alone() *Single {
	s := &Single{names: map[string]bool{}, announced: map[string][]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Run implements Jobs: the job starts at once.
func (s *Single) Run(name string, job func(ctx context.Context, token int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained {
		return
	}
	s.names[jobGroup(name)] = true
	s.jobs.Go(func() {
		for s.ctx.Err() == nil {
			job(s.ctx, aloneToken)
			retry.Sleep(s.ctx, restartPause)
		}
	})
}

// Follow implements Shares: it calls start for each number before it returns.
func (s *Single) Follow(group string, n int, start func(number int, token int64) (stop func(ctx context.Context))) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range n {
		if !s.drained {
			s.names[leaseName(group, number)] = true
			s.stops = append(s.stops, start(number, aloneToken))
		}
	}
}

// Holds implements Shares: it is true.
func (s *Single) Holds(string, int, int64) bool { return true }

// Drain ends the jobs and calls the stop functions, side by side.
func (s *Single) Drain(ctx context.Context) error {
	ctx, cancel := retry.Drain(ctx, drainGrace)
	defer cancel()
	s.mu.Lock()
	stops := s.stops
	s.stops, s.drained = nil, true
	s.mu.Unlock()
	s.cancel()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		var running sync.WaitGroup
		for _, stop := range stops {
			running.Go(func() { stop(ctx) })
		}
		running.Wait()
		s.jobs.Wait()
	}()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
