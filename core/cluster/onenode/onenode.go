// Package onenode runs the background work of a service on one node at a time.
//
// Without jobs (cluster.Jobs) the work runs in this process, as that of any service. With
// them it runs while this node has the lease of its name, and ends when the service
// drains or the lease is given up or lost.
package onenode

import (
	"context"

	"github.com/guidonhq/guidon/core/retry"
)

// Jobs runs jobs on one node at a time. cluster.Jobs is one.
type Jobs interface {
	Run(name string, job func(ctx context.Context, token int64))
}

// Go runs job as part of s, which must be started, on one of the nodes that share jobs.
// Nil jobs are those of a single node. ctx has the lease for cluster.Valid. A job that
// returns before ctx has ended runs again after a pause, unless jobs is nil.
func Go(s *retry.Service, jobs Jobs, name string, job func(ctx context.Context)) {
	if jobs == nil {
		s.Go(func(drainCtx, _ context.Context) { job(drainCtx) })
		return
	}
	jobs.Run(name, func(lease context.Context, _ int64) {
		done := make(chan struct{})
		started := s.Go(func(drainCtx, _ context.Context) {
			defer close(done)
			ctx, cancel := context.WithCancel(lease)
			defer cancel()
			defer context.AfterFunc(drainCtx, cancel)()
			job(ctx)
		})
		if !started { // the service has stopped; the lease ends with the node
			<-lease.Done()
			return
		}
		<-done
	})
}
