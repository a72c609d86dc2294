package unit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// Group is the name of the partitions among the shares of a cluster.
const Group = "partitions"

// Shares divides the partitions among the nodes. core/cluster implements it.
type Shares interface {
	// Follow calls start for each number below n that this node gets. start returns
	// the function that ends the work, which is called once, with a context that has
	// ended if the number is lost.
	Follow(group string, n int, start func(number int, token int64) (stop func(ctx context.Context)))
	// Withhold makes this node give its numbers to others, if there are any, until it
	// is called with false.
	Withhold(group string, on bool)
}

// Dependencies are what a Set uses.
type Dependencies struct {
	Log    eventlog.Log
	Shares Shares
	// Worker is the one whose stages, settings and metrics the units have. It is not
	// started itself, except for replays.
	Worker    *pipeline.Worker
	Followers []pipeline.Follower
	// Parts run beside the worker of each partition.
	Parts []Part
	// Erased returns the erasures by the numbers of a partition; nil uses those of
	// Worker.
	Erased func(partition int) pipeline.Erased
	// Reachable reports whether this node reaches the log; nil if that is not known. A
	// node that does not gives its partitions to others.
	Reachable func() bool
	// NeedLog are the groups of jobs that append to the log. A node that does not reach
	// it gives them to others, too.
	NeedLog []string
	Logger  *zap.Logger
}

// Part runs beside the worker of a partition while this node owns it.
type Part interface {
	// Register gives the readers of the part cursors in all partitions, where they have
	// none. It is called before the first Start, again if it fails.
	Register(ctx context.Context) error
	// Start begins and returns at once. It calls p.Fenced when it finds that another
	// node owns the partition. stop ends the work in order, or at once when ctx ends,
	// and returns when it has ended.
	Start(p pipeline.Partition) (stop func(ctx context.Context))
}

// Set has the units of this node. It is safe for concurrent use.
type Set struct {
	deps Dependencies

	mu      sync.Mutex
	stopped bool
	units   map[int]*Unit // by partition

	watching retry.Service
}

// NewSet returns a Set without units.
func NewSet(deps Dependencies) *Set {
	deps.Logger = deps.Logger.Named("ingestion")
	deps.Worker.ShareDatabase()
	return &Set{deps: deps, units: map[int]*Unit{}}
}

// Start begins to follow the partitions of this node. When it returns, each reader has a
// cursor in each partition: events that are accepted from now on reach it. If the cursors
// cannot be written, no unit starts until they are: a worker that reads a new log before
// the others have cursors would leave them behind events that were accepted earlier.
func (s *Set) Start(ctx context.Context) error {
	s.watching.Start()
	if err := s.register(ctx); err == nil {
		s.follow()
	} else {
		s.deps.Logger.Warn("readers not registered in all partitions; retrying", zap.Error(err))
		s.watching.Go(func(drainCtx, _ context.Context) {
			if retry.Until(drainCtx, startBackoff(), func() error { return s.register(drainCtx) }, func(error) {}) {
				s.follow()
			}
		})
	}
	if s.deps.Reachable != nil {
		s.watching.Every(time.Second, func(context.Context) {
			away := !s.deps.Reachable()
			for _, group := range append(s.deps.NeedLog, Group) {
				s.deps.Shares.Withhold(group, away)
			}
		})
	}
	return nil
}

func (s *Set) follow() { s.deps.Shares.Follow(Group, s.deps.Log.Partitions(), s.startUnit) }

// register gives followers and parts their cursors.
func (s *Set) register(ctx context.Context) error {
	for _, f := range s.deps.Followers {
		if err := s.deps.Log.Register(ctx, pipeline.FollowerReader(f), journal.End); err != nil {
			return fmt.Errorf("register %s: %w", f.Name(), err)
		}
	}
	for _, p := range s.deps.Parts {
		if err := p.Register(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops the units that are left and starts no more.
func (s *Set) Stop(ctx context.Context) error {
	_ = s.watching.Stop(ctx)
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	var stopping sync.WaitGroup
	for _, u := range s.Units() {
		stopping.Go(func() { s.stopUnit(ctx, u) })
	}
	stopping.Wait()
	return nil
}

// Units returns the units by the numbers of their partitions.
func (s *Set) Units() []*Unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Unit, 0, len(s.units))
	for _, u := range s.units {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *Unit) int { return cmp.Compare(a.number, b.number) })
	return out
}

// Worker returns the worker of a partition, or nil if this node does not own it.
func (s *Set) Worker(partition int) *pipeline.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[partition]; u != nil {
		return u.worker
	}
	return nil
}

// startUnit starts the unit of a partition.
func (s *Set) startUnit(number int, token int64) (stop func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return func(context.Context) {}
	}
	u := s.newUnit(number, token)
	s.units[number] = u
	u.start()
	return func(ctx context.Context) { s.stopUnit(ctx, u) }
}

func (s *Set) newUnit(number int, token int64) *Unit {
	u := &Unit{number: number, token: token, logger: s.deps.Logger.With(zap.Int("partition", number))}
	p := pipeline.Partition{Number: number, Token: token, Log: s.deps.Log.Partition(number, token), Fenced: u.setLost}
	if s.deps.Erased != nil {
		p.Erased = s.deps.Erased(number)
	}
	u.worker = s.deps.Worker.ForPartition(p)
	u.partition, u.parts = p, s.deps.Parts
	for _, f := range s.deps.Followers {
		u.followers = append(u.followers, pipeline.NewFollowerRunner(u.worker, f))
	}
	return u
}

// stopUnit stops a unit. A newer one of its partition stays.
func (s *Set) stopUnit(ctx context.Context, u *Unit) {
	u.stop(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[u.number] == u {
		delete(s.units, u.number)
	}
}
