package delivery

import (
	"context"
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
)

// Partition is a part of a shared log. One node at a time delivers its events, under a
// lease.
type Partition struct {
	Number int
	// Log has the records, and the cursors under the lease.
	Log reader.Log
	// Sinks are the sinks, with sessions for this partition.
	Sinks Sinks
	// Erased knows the erasures by the numbers of the partition; nil is without.
	Erased Erased
	// Elsewhere reports whether another node delivers to a sink, whose cursors stay then;
	// nil is without.
	Elsewhere func(sink string) bool
	// Holds reports whether the lease is held, as far as the node knows. It is called
	// before each call of a sink.
	Holds func() bool
	// Lost is called once when another node owns the partition. It must not wait.
	Lost func()
}

// ForPartition returns a service for a partition that has not started. It shares the
// settings, metrics, pauses and dead letters of d, which need not be started itself;
// FollowPauses of d follows the pauses for all. When the lease is lost, its deliveries
// stop and commit nothing.
func (d *Service) ForPartition(p Partition) *Service {
	s := newService(d)
	s.sinks, s.erased, s.elsewhere = p.Sinks, p.Erased, p.Elsewhere
	s.logger = d.logger.With(zap.Int("partition", p.Number))
	s.lease = &lease{number: p.Number, holds: p.Holds, onLost: func() {
		s.logger.Warn("lease of the partition lost: its deliveries stop")
		s.stopDeliveries()
		if p.Lost != nil {
			p.Lost()
		}
	}}
	s.log = &leasedLog{p.Log, s.lease}
	return s
}

// stopDeliveries ends all deliveries; none starts again.
func (d *Service) stopDeliveries() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, del := range d.running {
		del.stop()
	}
}

// lease is the lease of the partition of a delivery. A nil lease is held for
// ever. Its methods are safe for concurrent use.
type lease struct {
	number int
	holds  func() bool
	onLost func()
	lost   atomic.Bool
}

// suffix is the part of the name of a session that names the partition.
func (l *lease) suffix() string {
	if l == nil {
		return ""
	}
	return "@" + strconv.Itoa(l.number)
}

// check reports whether the lease is held. If not, it ends the deliveries.
func (l *lease) check() bool {
	if l == nil {
		return true
	}
	if !l.lost.Load() && !l.holds() {
		l.lose()
	}
	return !l.isLost()
}

func (l *lease) isLost() bool { return l != nil && l.lost.Load() }

// lose records that the lease is lost.
func (l *lease) lose() {
	if !l.lost.Swap(true) {
		l.onLost()
	}
}

// leaseLost is the code of the error of a log whose partition another node has taken over.
const leaseLost = "lease_lost"

// leasedLog is the log of a partition. It notices that another owner has taken the
// cursors over.
type leasedLog struct {
	reader.Log
	lease *lease
}

func (l *leasedLog) Register(ctx context.Context, name string, from journal.Start) (journal.Position, error) {
	p, err := l.Log.Register(ctx, name, from)
	return p, l.note(err)
}

func (l *leasedLog) Commit(ctx context.Context, name string, p journal.Position) error {
	return l.note(l.Log.Commit(ctx, name, p))
}

func (l *leasedLog) Unregister(ctx context.Context, name string) error {
	return l.note(l.Log.Unregister(ctx, name))
}

func (l *leasedLog) note(err error) error {
	if fault.Is(err, fault.Conflict) && fault.CodeOf(err) == leaseLost {
		l.lease.lose()
	}
	return err
}
