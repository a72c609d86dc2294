// Package unit processes the partitions that this node owns.
//
// A Unit is the processing of one partition under one lease: a worker with its two
// lanes, the followers behind it, and parts that wait for neither, such as deliveries
// to sinks. A Set starts a unit for each partition that the node gets and stops it when
// the partition is given up or lost. Units share the stages and the database; their
// transactions run side by side.
//
// What a unit commits is fenced by the token of its lease in the rows of its cursors
// (package pipeline): a unit that goes on after its partition was taken over commits
// nothing and stops by itself.
package unit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/retry"
)

// Unit processes one partition.
type Unit struct {
	number    int
	token     int64
	worker    *pipeline.Worker
	followers []*pipeline.FollowerRunner
	partition pipeline.Partition
	parts     []Part
	logger    *zap.Logger
	lost      atomic.Bool
	service   retry.Service
}

// Number returns the number of the partition.
func (u *Unit) Number() int { return u.number }

// Worker returns the worker of the partition, for its status and progress.
func (u *Unit) Worker() *pipeline.Worker { return u.worker }

// Lost reports whether the unit has found that another node owns the partition.
func (u *Unit) Lost() bool { return u.lost.Load() }

// start begins to process. Without a log or a database the unit waits for them.
func (u *Unit) start() {
	u.service.Start()
	u.service.Go(u.run)
}

// stop finishes the batches at hand and waits for them. When ctx or the time of workerStop
// ends first, they are rolled back; the next owner processes them.
func (u *Unit) stop(ctx context.Context) { _ = u.service.Stop(ctx) }

// startBackoff is the pause between attempts to start without a log or a database.
func startBackoff() retry.Backoff {
	return retry.Backoff{Min: 50 * time.Millisecond, Max: 5 * time.Second}
}

// component is a part of a unit.
type component interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// partStop bounds the stop of a part: no node processes the partition meanwhile. What a
// sink does not answer in this time is sent again by the next owner.
const partStop = 5 * time.Second

// workerStop bounds the stop of the worker and of the followers: no node processes the
// partition meanwhile. A transaction that takes longer is rolled back, and the next owner
// processes its batch.
const workerStop = 700 * time.Millisecond

// run starts the worker, then the followers, and stops all of them at once. The parts do
// not wait for them.
func (u *Unit) run(drainCtx, killCtx context.Context) {
	var stopping sync.WaitGroup
	defer stopping.Wait()
	for _, p := range u.parts {
		stop := p.Start(u.partition)
		stopping.Go(func() {
			<-drainCtx.Done()
			ctx, cancel := context.WithTimeout(killCtx, partStop)
			defer cancel()
			stop(ctx)
		})
	}
	parts := []component{u.worker}
	for _, f := range u.followers {
		parts = append(parts, f)
	}
	started := 0
	retry.Until(drainCtx, startBackoff(), func() error {
		for ; started < len(parts); started++ {
			err := parts[started].Start(drainCtx)
			if fault.Is(err, fault.Conflict) {
				u.setLost()
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(err error) { u.logger.Warn("waiting to read the partition", zap.Error(err)) })
	<-drainCtx.Done()
	ctx, cancel := context.WithTimeout(killCtx, workerStop)
	defer cancel()
	errs := make([]error, started)
	var ending sync.WaitGroup
	for i := range started {
		ending.Go(func() { errs[i] = parts[i].Stop(ctx) })
	}
	ending.Wait()
	if err := errors.Join(errs...); err != nil {
		u.logger.Warn("partition not stopped cleanly", zap.Error(err))
	}
}

// setLost notes that another node owns the partition.
func (u *Unit) setLost() {
	if !u.lost.Swap(true) {
		u.logger.Warn("lease of the partition lost: its processing stops", zap.Int64("lease", u.token))
	}
}
