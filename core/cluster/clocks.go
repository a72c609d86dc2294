package cluster

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

const (
	// clockTolerance is the difference from the clock of the database at which the clock
	// of a node counts as wrong.
	clockTolerance = 5 * time.Second
	clockInterval  = 15 * time.Second
)

// clocks compares the clock of the machine with that of the database.
type clocks interface {
	Sync(ctx context.Context) error
	Ahead() time.Duration
}

// ClockState is the clock of a node beside that of the database. Leases do not depend on
// it; times of events do.
type ClockState struct {
	AheadSeconds float64 `json:"ahead_seconds"` // of the database; negative: behind
	Problem      string  `json:"problem,omitempty"`
}

// Degraded implements the interface of core/web/health.
func (s ClockState) Degraded() bool { return s.Problem != "" }

// Clock compares the clock of the machine with that of the database as it was read last.
func (n *Node) Clock() ClockState {
	if n.clocks == nil {
		return ClockState{}
	}
	ahead := n.clocks.Ahead()
	s := ClockState{AheadSeconds: ahead.Round(time.Millisecond).Seconds()}
	if ahead.Abs() > clockTolerance {
		side := "ahead of"
		if ahead < 0 {
			side = "behind"
		}
		s.Problem = fmt.Sprintf("The clock of this server is %s %s the clock of the database: times of events that it accepts are wrong. Check the time services of both.",
			ahead.Abs().Round(time.Second), side)
	}
	return s
}

// watchClock reads the clock of the database now and then, and logs when that of the
// machine begins or ends to differ.
func (n *Node) watchClock(ctx context.Context) {
	wrong := false
	for ctx.Err() == nil {
		if err := n.clocks.Sync(ctx); err != nil && ctx.Err() == nil {
			n.log.Debug("clock of the database not read", zap.Error(err))
		}
		s := n.Clock()
		switch {
		case s.Degraded() && !wrong:
			n.log.Warn("clock differs from that of the database", zap.Float64("ahead_seconds", s.AheadSeconds), zap.String("problem", s.Problem))
		case !s.Degraded() && wrong:
			n.log.Info("clock agrees with that of the database again", zap.Float64("ahead_seconds", s.AheadSeconds))
		}
		wrong = s.Degraded()
		retry.Sleep(ctx, clockInterval)
	}
}
