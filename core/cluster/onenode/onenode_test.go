package onenode_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/cluster/onenode"
	"github.com/guidonhq/guidon/core/retry"
)

// leases gives the job of each node the only lease in turn.
type leases struct{ lock sync.Mutex }

// member is a node that can lose its lease.
type member struct {
	all  *leases
	mu   sync.Mutex
	lose context.CancelFunc
	end  context.Context
}

func (m *member) Run(_ string, job func(ctx context.Context, token int64)) {
	go func() {
		for m.end.Err() == nil {
			m.all.lock.Lock()
			ctx, cancel := context.WithCancel(m.end)
			m.mu.Lock()
			m.lose = cancel
			m.mu.Unlock()
			job(ctx, 1)
			cancel()
			m.all.lock.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
}

func (m *member) loseLease() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// TestJobRunsOnOneNode runs a job on two nodes, takes the lease away from one and stops
// the service of the other.
func TestJobRunsOnOneNode(t *testing.T) {
	t.Parallel()
	all := &leases{}
	var running atomic.Int32
	var tooMany atomic.Bool
	var members [2]*member
	var services [2]retry.Service
	var runs [2]atomic.Int32
	for i := range members {
		members[i] = &member{all: all, end: t.Context()}
		services[i].Start()
		onenode.Go(&services[i], members[i], "work", func(ctx context.Context) {
			if running.Add(1) > 1 {
				tooMany.Store(true)
			}
			defer running.Add(-1)
			runs[i].Add(1)
			<-ctx.Done()
		})
	}
	eventually(t, "the job runs", func() bool { return running.Load() == 1 })
	for range 20 { // the lock is not fair: either node gets it
		before := runs[0].Load() + runs[1].Load()
		for i, m := range members {
			if runs[i].Load() > 0 {
				m.loseLease()
			}
		}
		eventually(t, "the job runs again", func() bool { return runs[0].Load()+runs[1].Load() > before && running.Load() == 1 })
	}
	for i := range services {
		if err := services[i].Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if running.Load() != 0 {
		t.Error("a job runs after the stop of its service")
	}
	if tooMany.Load() {
		t.Error("the job ran on two nodes at once")
	}
}

// TestSingleNode runs a job without a cluster, in both forms.
func TestSingleNode(t *testing.T) {
	t.Parallel()
	alone := cluster.Alone()
	t.Cleanup(func() { _ = alone.Drain(context.Background()) })
	for name, jobs := range map[string]onenode.Jobs{"no jobs": nil, "alone": alone} {
		t.Run(name, func(t *testing.T) {
			var s retry.Service
			s.Start()
			var running atomic.Bool
			onenode.Go(&s, jobs, "work", func(ctx context.Context) {
				running.Store(true)
				<-ctx.Done()
				running.Store(false)
			})
			eventually(t, "the job runs", running.Load)
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if running.Load() {
				t.Error("the job runs after the stop of its service")
			}
		})
	}
}
