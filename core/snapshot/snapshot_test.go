package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("database is down")

// A map polls when it is woken, long before its interval ends; an error does not end it.
func TestWakeBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(1)
		opts := s.options()
		opts.Interval = time.Hour
		m, wake := snapshot.New(opts), make(chan struct{}, 1)
		m.WakeBy(wake)
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Stop(t.Context()) }()
		begin := time.Now()
		s.set(func() { s.down = true })
		wake <- struct{}{}
		synctest.Wait()
		s.set(func() { s.down, s.revisions[1] = false, 7 })
		wake <- struct{}{}
		for v, _ := m.Get(1); v != 7; v, _ = m.Get(1) {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the change was seen after %s", took)
		}
	})
}

// store is a table of numbers by project.
type store struct {
	mu        sync.Mutex
	revisions map[int64]int64
	down      bool
	broken    int64 // this project cannot be loaded
	loads     map[int64]int
	olds      []int64
}

func newStore(projects ...int64) *store {
	s := &store{revisions: map[int64]int64{}, loads: map[int64]int{}}
	for _, p := range projects {
		s.revisions[p] = 1
	}
	return s
}

func (s *store) set(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

func (s *store) Revisions(context.Context) (map[int64]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	return maps.Clone(s.revisions), nil
}

// Load returns the revision as the value.
func (s *store) Load(_ context.Context, project, old int64) (value, revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down || s.broken == project {
		return 0, 0, errDown
	}
	s.loads[project]++
	s.olds = append(s.olds, old)
	return s.revisions[project], s.revisions[project], nil
}

func (s *store) options() snapshot.Options[int64, int64] {
	return snapshot.Options[int64, int64]{Revisions: s.Revisions, Load: s.Load, Interval: time.Second}
}

func check(t *testing.T, m *snapshot.Map[int64, int64], project, want int64) {
	t.Helper()
	if got, ok := m.Get(project); got != want || ok != (want != 0) {
		t.Errorf("project %d is %d, %v; want %d", project, got, ok, want)
	}
}

func TestPollLoadsWhatChanged(t *testing.T) {
	t.Parallel()
	s := newStore(1, 2)
	m := snapshot.New(s.options())
	check(t, m, 1, 0)
	for range 3 {
		if err := m.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.set(func() { s.revisions[2], s.revisions[3] = 7, 1 })
	if err := m.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, m, 1, 1)
	check(t, m, 2, 7)
	check(t, m, 3, 1)
	if want := map[int64]int{1: 1, 2: 2, 3: 1}; !maps.Equal(s.loads, want) {
		t.Errorf("loads by project: %v, want %v", s.loads, want)
	}
}

func TestUnknownRevisionIsLoadedOnceMore(t *testing.T) {
	t.Parallel()
	s := newStore(1)
	opts := s.options()
	opts.Load = func(ctx context.Context, project, old int64) (int64, int64, error) {
		v, _, err := s.Load(ctx, project, old)
		return v, 0, err
	}
	m := snapshot.New(opts)
	if err := m.Refresh(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := m.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.loads[1] != 2 {
		t.Errorf("%d loads, want one for Refresh and one for the polls", s.loads[1])
	}
}

func TestBrokenKeyKeepsItsValueAndAffectsNoOther(t *testing.T) {
	t.Parallel()
	s := newStore(1, 2)
	m := snapshot.New(s.options())
	if err := m.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.revisions[1], s.revisions[2], s.broken = 5, 5, 1 })
	if err := m.Poll(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("Poll = %v, want the error of project 1", err)
	}
	check(t, m, 1, 1)
	check(t, m, 2, 5)
	s.set(func() { s.broken = 0 })
	if err := m.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, m, 1, 5)
}

func TestRefreshAllLoadsFromScratch(t *testing.T) {
	t.Parallel()
	s := newStore(1)
	m := snapshot.New(s.options())
	for _, refresh := range []func(context.Context) error{m.Poll, func(ctx context.Context) error { return m.Refresh(ctx, 1) }, m.RefreshAll} {
		if err := refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(s.olds); got != "[0 1 0]" {
		t.Errorf("old values given to Load: %s, want [0 1 0]", got)
	}
}

func TestLazyLoadsOnDemand(t *testing.T) {
	t.Parallel()
	s := newStore(1, 2)
	opts := s.options()
	opts.Lazy = true
	m := snapshot.New(opts)
	if err := m.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, m, 1, 0)
	if v, err := m.GetOrLoad(t.Context(), 1); v != 1 || err != nil {
		t.Errorf("GetOrLoad = %d, %v", v, err)
	}
	s.set(func() { s.revisions[1], s.revisions[2] = 2, 2 })
	if err := m.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, m, 1, 2)
	check(t, m, 2, 0)
	s.set(func() { s.down = true })
	if _, err := m.GetOrLoad(t.Context(), 2); !errors.Is(err, errDown) {
		t.Errorf("GetOrLoad = %v, want the error of Load", err)
	}
}

func TestStartFollowsChangesAndReportsFailuresOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(1)
		var failures, recoveries atomic.Int64
		opts := s.options()
		opts.OnFailure = func(error) { failures.Add(1) }
		opts.OnRecovery = func() { recoveries.Add(1) }
		m := snapshot.New(opts)
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, m, 1, 1)
		s.set(func() { s.revisions[1] = 2 })
		time.Sleep(1100 * time.Millisecond)
		check(t, m, 1, 2)
		s.set(func() { s.down = true })
		time.Sleep(5 * time.Second)
		check(t, m, 1, 2)
		s.set(func() { s.down, s.revisions[1] = false, 3 })
		time.Sleep(2 * time.Second)
		check(t, m, 1, 3)
		if failures.Load() != 1 || recoveries.Load() != 1 {
			t.Errorf("%d failures and %d recoveries reported, want one of each", failures.Load(), recoveries.Load())
		}
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		s.set(func() { s.revisions[1] = 4 })
		time.Sleep(5 * time.Second)
		check(t, m, 1, 3)
	})
}

func TestStartReturnsTheErrorOfTheFirstPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(1)
		s.down = true
		m := snapshot.New(s.options())
		if err := m.Start(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("Start = %v, want the error of Revisions", err)
		}
		s.set(func() { s.down = false })
		time.Sleep(2 * time.Second)
		check(t, m, 1, 1)
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// slowStore blocks loads of a project until they are released.
type slowStore struct {
	*store
	block   int64
	entered chan struct{}
	release chan struct{}
}

func newSlowStore(block int64, projects ...int64) *slowStore {
	return &slowStore{store: newStore(projects...), block: block, entered: make(chan struct{}), release: make(chan struct{})}
}

func (s *slowStore) Load(ctx context.Context, project, old int64) (value, revision int64, err error) {
	value, revision, err = s.store.Load(ctx, project, old)
	if project == s.block {
		s.entered <- struct{}{}
		<-s.release
	}
	return value, revision, err
}

func TestSlowLoadDelaysNoOtherKey(t *testing.T) {
	t.Parallel()
	s := newSlowStore(1, 1, 2)
	m := snapshot.New(snapshot.Options[int64, int64]{Revisions: s.Revisions, Load: s.Load})
	var loads sync.WaitGroup
	loads.Go(func() {
		if err := m.Refresh(t.Context(), 1); err != nil {
			t.Error(err)
		}
	})
	<-s.entered
	if err := m.Refresh(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	check(t, m, 1, 0)
	check(t, m, 2, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := m.Refresh(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Refresh that waits = %v, want the end of its context", err)
	}
	s.release <- struct{}{}
	loads.Wait()
	check(t, m, 1, 1)
}

func TestRefreshSeesWhatWasCommittedBefore(t *testing.T) {
	t.Parallel()
	s := newSlowStore(1, 1)
	m := snapshot.New(snapshot.Options[int64, int64]{Revisions: s.Revisions, Load: s.Load})
	var loads sync.WaitGroup
	loads.Go(func() {
		if err := m.Refresh(t.Context(), 1); err != nil {
			t.Error(err)
		}
	})
	<-s.entered // this load has read revision 1
	s.set(func() { s.revisions[1] = 2 })
	for range 5 {
		loads.Go(func() {
			if err := m.Refresh(t.Context(), 1); err != nil {
				t.Error(err)
			}
			check(t, m, 1, 2)
		})
	}
	s.release <- struct{}{}
	finished := make(chan struct{})
	go func() {
		loads.Wait()
		close(finished)
	}()
	for {
		select {
		case <-s.entered:
			s.release <- struct{}{}
			continue
		case <-finished:
		}
		break
	}
	if s.loads[1] < 2 {
		t.Errorf("%d loads: a call took the result of a load that began before it", s.loads[1])
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newStore(1, 2, 3)
	m := snapshot.New(s.options())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				project := int64(n%5 + 1)
				s.set(func() { s.revisions[project]++ })
				var want int64
				s.set(func() { want = s.revisions[project] })
				if err := m.Refresh(t.Context(), project); err != nil {
					t.Error(err)
				}
				if got, ok := m.Get(project); !ok || got < want {
					t.Errorf("goroutine %d: project %d is %d after Refresh, want at least %d", i, project, got, want)
				}
				if n%20 == 0 {
					if err := errors.Join(m.Poll(t.Context()), m.RefreshAll(t.Context())); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}
