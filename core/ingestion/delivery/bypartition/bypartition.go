// Package bypartition delivers a shared log to the sinks, partition by partition.
//
// A Set is a part of the units of this node: for each partition that the node owns it runs
// a delivery.Service on the log of the partition, with cursors under the lease. Each sink
// has one session a partition, so its sequence numbers and its order are those of the
// partition. All services share the settings, metrics, pauses and dead letters.
//
// Before each call of a sink the node checks that it holds the lease. A service that
// learns from a cursor that another node owns the partition sends nothing any more and
// reports the lease as lost. A call at hand at that time may arrive late, after calls of
// the new owner: sinks get events at least once.
//
// To operators a Set is one delivery a sink: states and lags are sums over the partitions.
package bypartition

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// Sinks are the sinks of a server.
type Sinks interface {
	// Partition returns the sinks with sessions for a partition. end closes these
	// sessions, when no call is running; it is called once.
	Partition(number int) (sinks delivery.Sinks, end func(ctx context.Context))
}

// Dependencies are what a Set uses.
type Dependencies struct {
	Log eventlog.Log
	// Service has the settings and dependencies of all services. It is not started.
	Service *delivery.Service
	Sinks   Sinks
	// Holds reports whether this node holds the lease of a partition with a token.
	Holds func(partition int, token int64) bool
	// Nodes is how nodes know the sinks of each other.
	Nodes Nodes
	// Replays is the group of the job that replays dead letters.
	Replays string
	Logger  *zap.Logger
}

// Nodes are the nodes of the log. core/cluster implements it.
type Nodes interface {
	Announce(kind string, names []string)
	Announced(kind, name string) bool
	Withhold(group string, on bool)
}

// sinkKind is the kind of the names of sinks.
const sinkKind = "sink"

// announceInterval is how late the other nodes learn of a sink that was added.
const announceInterval = time.Second

// Set has the deliveries of the partitions of this node. It is safe for concurrent use.
type Set struct {
	deps      Dependencies
	following retry.Service

	mu       sync.Mutex
	services map[int]*service // by partition
	missing  map[string]bool  // sinks that only other nodes have and that were logged
	refused  map[string]bool  // sinks whose replays need another node
}

// service is the deliveries of one partition.
type service struct {
	*delivery.Service
	number int
}

var (
	_ unit.Part           = (*Set)(nil)
	_ delivery.Deliveries = (*Set)(nil)
)

// NewSet returns a Set without partitions.
func NewSet(deps Dependencies) *Set {
	return &Set{deps: deps, services: map[int]*service{}, missing: map[string]bool{}, refused: map[string]bool{}}
}

// Open announces the sinks of this node, and begins to follow the pauses that other nodes
// set.
func (s *Set) Open(ctx context.Context) error {
	s.announce(ctx)
	s.following.Start()
	s.following.Every(announceInterval, s.announce)
	s.following.Go(func(drainCtx, _ context.Context) { s.deps.Service.FollowPauses(drainCtx) })
	return nil
}

// announce tells the other nodes the sinks of this one, and whether it can replay.
func (s *Set) announce(context.Context) {
	s.deps.Nodes.Announce(sinkKind, s.deps.Service.Names())
	s.deps.Nodes.Withhold(s.deps.Replays, !s.canReplay())
}

// canReplay reports whether this node has a session of each sink that a replay needed.
func (s *Set) canReplay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sink := range s.refused {
		if !s.deps.Nodes.Announced(sinkKind, sink) || slices.Contains(s.deps.Service.Names(), sink) {
			delete(s.refused, sink)
		}
	}
	return len(s.services) > 0 && len(s.refused) == 0
}

// elsewhere reports whether another node has a sink that this one has not. The cursors of
// such a sink stay; its events in the partitions of this node wait for a node that has it.
func (s *Set) elsewhere(sink string) bool {
	has := s.deps.Nodes.Announced(sinkKind, sink)
	s.mu.Lock()
	defer s.mu.Unlock()
	if has && !s.missing[sink] {
		s.deps.Logger.Warn("sink configured on other nodes only: its events in partitions of this node wait", zap.String("sink", sink))
	}
	s.missing[sink] = has
	return has
}

// Register implements unit.Part: it gives each sink a cursor in each partition.
func (s *Set) Register(ctx context.Context) error {
	return s.deps.Service.Register(func(reader string, from journal.Start) error {
		return s.deps.Log.Register(ctx, reader, from)
	})
}

// Close ends that. The units stop the partitions.
func (s *Set) Close(ctx context.Context) error { return s.following.Stop(ctx) }

// Start implements unit.Part.
func (s *Set) Start(p pipeline.Partition) (stop func(ctx context.Context)) {
	sinks, end := s.deps.Sinks.Partition(p.Number)
	one := &service{number: p.Number, Service: s.deps.Service.ForPartition(delivery.Partition{
		Number: p.Number, Log: p.Log, Sinks: sinks, Erased: erasedOf(p), Elsewhere: s.elsewhere,
		Holds: func() bool { return s.deps.Holds(p.Number, p.Token) }, Lost: p.Fenced,
	})}
	s.mu.Lock()
	s.services[p.Number] = one
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	go func() {
		defer close(started)
		_ = one.Start(ctx) // returns nil
	}()
	return func(ctx context.Context) {
		cancel()
		<-started
		_ = one.Stop(ctx) // returns nil
		end(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.services[p.Number] == one {
			delete(s.services, p.Number)
		}
	}
}

// erasedOf returns the erasures of a partition, nil without.
func erasedOf(p pipeline.Partition) delivery.Erased {
	if e, ok := p.Erased.(*erasure.Partition); ok {
		return erased{e}
	}
	return nil
}

// erased reads the erasures of a partition before each call of a sink.
type erased struct{ *erasure.Partition }

var _ delivery.ErasedLoader = erased{}

// LoadErased implements delivery.ErasedLoader.
func (e erased) LoadErased(ctx context.Context, after uint64) (delivery.Erased, error) {
	return e.Marks(ctx, after)
}

// running returns the services by their partitions.
func (s *Set) running() []*service {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*service, 0, len(s.services))
	for _, one := range s.services {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *service) int { return cmp.Compare(a.number, b.number) })
	return out
}

// Pause implements delivery.Deliveries. Other nodes follow within a second.
func (s *Set) Pause(ctx context.Context, sink, reason string) error {
	return s.deps.Service.Pause(ctx, sink, reason)
}

// Resume implements delivery.Deliveries.
func (s *Set) Resume(ctx context.Context, sink string) error {
	return s.deps.Service.Resume(ctx, sink)
}

// errElsewhere is the error of a replay to a sink that only other nodes have.
var errElsewhere = fault.New(fault.Unavailable, "sink_elsewhere", "Only other servers have this sink; one of them replays.").After(10 * time.Second)

// Replay implements delivery.Deliveries. The event goes through the session of its
// partition. If another node owns that, it goes through any other session of the sink,
// with the number 1, which every session has used.
func (s *Set) Replay(ctx context.Context, sink string, ev sdk.Event, seq uint64, attempt uint32) error {
	if !slices.Contains(s.deps.Service.Names(), sink) {
		if !s.deps.Nodes.Announced(sinkKind, sink) {
			return delivery.ErrNoSink
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused[sink] = true
		return errElsewhere
	}
	own := eventlog.PartitionOf(ev.ProjectID, ev.DistinctID, s.deps.Log.Partitions())
	all := s.running()
	slices.SortStableFunc(all, func(a, b *service) int { return cmp.Compare(distance(a, own), distance(b, own)) })
	for _, one := range all {
		if one.number != own {
			seq = 1
		}
		err := one.Replay(ctx, sink, ev, seq, attempt)
		if !errors.Is(err, delivery.ErrNoSink) {
			return err
		}
	}
	return delivery.ErrSinkBusy
}

// distance is 0 for the service of a partition and 1 for others.
func distance(s *service, partition int) int {
	if s.number == partition {
		return 0
	}
	return 1
}

// stats returns the statistics of all partitions, which are read side by side: some need
// a record from the log.
func (s *Set) stats(ctx context.Context) ([]journal.Stats, error) {
	all := make([]journal.Stats, s.deps.Log.Partitions())
	errs := make([]error, len(all))
	var reading sync.WaitGroup
	for number := range all {
		reading.Go(func() { all[number], errs[number] = s.deps.Log.Partition(number, 0).Stats(ctx) })
	}
	reading.Wait()
	return all, errors.Join(errs...)
}

// Status implements delivery.Deliveries. Lags are those of all partitions, states and
// counts those of this node.
func (s *Set) Status(ctx context.Context) ([]delivery.SinkStatus, error) {
	names := s.deps.Service.Names()
	slices.Sort(names)
	out := make([]delivery.SinkStatus, len(names))
	for i, name := range names {
		out[i] = delivery.SinkStatus{Sink: name, State: status.Idle}
	}
	own := map[int]*service{}
	for _, one := range s.running() {
		own[one.number] = one
	}
	all, err := s.stats(ctx)
	if err != nil {
		return nil, err
	}
	for number, stats := range all {
		var here []delivery.SinkStatus
		if one := own[number]; one != nil {
			here = one.StatusOf(stats.Readers)
		}
		for i := range out {
			at := slices.IndexFunc(here, func(p delivery.SinkStatus) bool { return p.Sink == out[i].Sink })
			if at >= 0 {
				out[i].AddPartition(number, here[at], true)
				continue
			}
			elsewhere := delivery.SinkStatus{Sink: out[i].Sink}
			elsewhere.AddLag(stats.Readers)
			out[i].AddPartition(number, elsewhere, false)
		}
	}
	for i := range out {
		if p := s.deps.Service.Paused(out[i].Sink); p != nil {
			out[i].Paused, out[i].State, out[i].Since = p, status.Paused, p.At
		}
	}
	return out, nil
}
