package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// memory is a store in memory, shared by simulated nodes.
type memory struct {
	nodes  map[string]nodeRow
	leases map[string]leaseRow
}

func (m *memory) read() (v view) {
	for _, n := range m.nodes {
		v.nodes = append(v.nodes, n)
	}
	for _, l := range m.leases {
		v.leases = append(v.leases, l)
	}
	return v
}

func (m *memory) writeBeat(n nodeRow) {
	n.beat = m.nodes[n.id].beat + 1
	m.nodes[n.id] = n
}

func (m *memory) take(c claim) int64 {
	l, ok := m.leases[c.name]
	if !ok {
		m.leases[c.name] = leaseRow{c.name, c.node, 1}
		return 1
	}
	owner, exists := m.nodes[l.node]
	if l.token != c.token || l.node != "" && l.node != c.node && exists && owner.beat != c.beat {
		return 0
	}
	m.leases[c.name] = leaseRow{c.name, c.node, l.token + 1}
	return l.token + 1
}

func (m *memory) release(l leaseRow) {
	if m.leases[l.name] == l {
		m.leases[l.name] = leaseRow{l.name, "", l.token}
	}
}

// leave empties the groups of a node whose beat is as seen.
func (m *memory) leave(node string, beat int64) {
	if n, ok := m.nodes[node]; ok && n.beat == beat {
		n.takes = nil
		m.nodes[node] = n
	}
}

// call is a statement on its way: the simulation decides when it runs and when its
// answer arrives, and whether either is lost.
type call struct {
	run    func()
	began  time.Duration
	ran    bool
	answer chan error // nil once it is answered
}

// link is the store of one simulated node.
type link struct {
	s *simulation
	m *member
}

var errLost = errors.New("connection lost")

func (l link) do(run func()) error {
	c := &call{run: run, began: l.s.now(), answer: make(chan error, 1)}
	answer := c.answer
	l.s.mu.Lock()
	l.m.calls = append(l.m.calls, c)
	l.s.mu.Unlock()
	return <-answer
}

func (l link) writeBeat(_ context.Context, n nodeRow) error {
	return l.do(func() { l.s.store.writeBeat(n) })
}

func (l link) read(context.Context) (v view, err error) {
	err = l.do(func() { v = l.s.store.read() })
	return v, err
}

func (l link) take(_ context.Context, c claim) (token int64, err error) {
	var got int64
	if err = l.do(func() { got = l.s.store.take(c) }); err != nil {
		return 0, err
	}
	return got, nil
}

func (l link) release(_ context.Context, r leaseRow) error {
	return l.do(func() { l.s.store.release(r) })
}

func (l link) endSessions(_ context.Context, node string, beat int64) error {
	return l.do(func() { l.s.store.leave(node, beat) })
}

func (l link) fence(context.Context, leaseRow) (bool, error)            { return true, nil }
func (l link) remove(context.Context, string) error                     { return nil }
func (l link) removeOld(context.Context, []string) error                { return nil }
func (l link) identify(_ context.Context, n Info) (string, error)       { return n.LogID, nil }
func (l link) ready() bool                                              { return true }
func (l link) close()                                                   {}
func (l link) Publish(string, string)                                   {}
func (l link) Subscribe(string) (payloads <-chan string, cancel func()) { return nil, func() {} }

// member is a simulated node.
type member struct {
	n              *Node
	offset         time.Duration
	rate           float64 // of its clock
	calls          []*call
	beating        atomic.Bool
	polling        atomic.Bool
	nextBeat       time.Duration
	nextPoll       time.Duration
	paused, cut    time.Duration // until then
	dead, draining bool
	running        map[string]int64 // by lease, the token
	slow           time.Duration    // of its stop functions
	stops          []stopping
}

type stopping struct {
	done chan struct{}
	due  time.Duration
}

type simulation struct {
	t       *testing.T
	mu      sync.Mutex
	r       *rand.Rand
	clock   atomic.Int64
	store   memory
	members []*member
	started map[string]int64 // the highest token with which a lease was started
	starts  int
	calm    bool
}

const (
	simNumbers = 12
	simGroup   = "log"
	simJobs    = 3
)

func (s *simulation) join() {
	m := &member{offset: time.Duration(s.r.Int64N(int64(time.Hour))), rate: 0.99 + s.r.Float64()*0.02, running: map[string]int64{}}
	l := link{s, m}
	m.n = newNode(DefaultConfig(), Info{ID: fmt.Sprintf("node-%02d", len(s.members)), Name: "n"}, l, l, zap.NewNop())
	m.n.clock = func() time.Duration { return m.offset + time.Duration(float64(s.now())*m.rate) }
	m.slow = time.Duration(s.r.Int64N(int64(3 * time.Second)))
	m.n.Follow(simGroup, simNumbers, func(number int, token int64) func(context.Context) {
		name := leaseName(simGroup, number)
		s.begin(m, name, token)
		return func(ctx context.Context) {
			done := make(chan struct{})
			s.mu.Lock()
			m.stops = append(m.stops, stopping{done, s.now() + m.slow})
			s.mu.Unlock()
			select {
			case <-done:
			case <-ctx.Done():
			}
			s.end(m, name)
		}
	})
	for j := range simJobs {
		name := fmt.Sprint("job", j)
		m.n.Run(name, func(ctx context.Context, token int64) {
			s.begin(m, jobGroup(name), token)
			<-ctx.Done()
			s.end(m, jobGroup(name))
		})
	}
	s.members = append(s.members, m)
}

func (s *simulation) begin(m *member, name string, token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token <= s.started[name] {
		s.t.Errorf("%s starts with token %d after %d", name, token, s.started[name])
	}
	if m.running[name] != 0 {
		s.t.Errorf("%s starts a second time in %s", name, m.n.info.ID)
	}
	s.started[name] = token
	m.running[name] = token
	s.starts++
}

func (s *simulation) end(m *member, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(m.running, name)
}

func (s *simulation) now() time.Duration { return time.Duration(s.clock.Load()) }

// step advances the time and lets some things happen.
func (s *simulation) step() {
	s.clock.Add(s.r.Int64N(int64(120 * time.Millisecond)))
	for _, m := range s.members {
		if m.dead || s.now() < m.paused {
			s.runLate(m)
			continue
		}
		if s.now() >= m.nextBeat && m.beating.CompareAndSwap(false, true) {
			m.nextBeat = s.now() + time.Second
			go func() { _ = m.n.beat(context.Background()); m.beating.Store(false) }()
		}
		if s.now() >= m.nextPoll && m.polling.CompareAndSwap(false, true) {
			m.nextPoll = s.now() + 750*time.Millisecond + time.Duration(s.r.Int64N(int64(500*time.Millisecond)))
			go func() { _ = m.n.poll(context.Background()); m.polling.Store(false) }()
		}
		if s.r.IntN(3) == 0 {
			m.n.mu.Lock()
			m.n.expire(m.n.clock())
			m.n.mu.Unlock()
		}
		synctest.Wait()
		s.answer(m)
		s.mu.Lock()
		m.stops = slices.DeleteFunc(m.stops, func(p stopping) bool {
			if s.now() >= p.due {
				close(p.done)
			}
			return s.now() >= p.due
		})
		s.mu.Unlock()
		synctest.Wait()
	}
	synctest.Wait()
	if s.r.IntN(3) == 0 { // the check makes nodes notice that their beats are old
		s.check()
	}
}

// runLate runs statements of a node that is stopped or dead: the database had them
// already.
func (s *simulation) runLate(m *member) {
	for _, c := range m.calls {
		if !c.ran && s.r.IntN(4) == 0 {
			c.ran = true
			c.run()
		}
	}
}

// answer lets statements of a node proceed.
func (s *simulation) answer(m *member) {
	s.mu.Lock()
	calls := slices.Clone(m.calls)
	s.mu.Unlock()
	for _, c := range calls {
		cut := s.now() < m.cut
		if !c.ran && !cut && (s.calm || s.r.IntN(3) > 0) {
			c.ran = true
			c.run()
		}
		switch {
		case c.answer == nil:
		case c.ran && !cut && (s.calm || s.r.IntN(3) > 0):
			c.answer <- nil
			c.answer = nil
		case s.now()-c.began > statementTimeout:
			c.answer <- errLost
			c.answer = nil
			if s.r.IntN(2) == 0 { // else it may run much later
				c.ran = true
			}
		}
	}
	s.mu.Lock()
	m.calls = slices.DeleteFunc(m.calls, func(c *call) bool { return c.answer == nil && c.ran })
	s.mu.Unlock()
}

// check fails if two nodes that run may act on one lease.
func (s *simulation) check() {
	valid := map[string]string{}
	for _, m := range s.members {
		if m.dead || s.now() < m.paused {
			continue
		}
		s.mu.Lock()
		running := map[string]int64{}
		for name, token := range m.running {
			running[name] = token
		}
		s.mu.Unlock()
		for name, token := range running {
			m.n.mu.Lock()
			sl := m.n.slots[name]
			ok := sl != nil && sl.token == token && m.n.valid(sl)
			m.n.mu.Unlock()
			if !ok {
				continue
			}
			if other := valid[name]; other != "" {
				s.t.Errorf("%s and %s hold %s at %s", other, m.n.info.ID, name, s.now())
			}
			valid[name] = m.n.info.ID
		}
	}
}

// trouble lets something happen to a random node.
func (s *simulation) trouble() {
	m := s.members[s.r.IntN(len(s.members))]
	long := time.Duration(s.r.Int64N(int64(20 * time.Second)))
	living := 0
	for _, m := range s.members {
		if !m.dead && !m.draining {
			living++
		}
	}
	switch s.r.IntN(8) {
	case 0:
		if living < 6 {
			s.join()
		}
	case 1:
		if living > 2 {
			m.dead = true
		}
	case 2, 3:
		m.paused = s.now() + long
	case 4, 5:
		m.cut = s.now() + long
	case 6: // the database is away from all
		for _, m := range s.members {
			m.cut = s.now() + long
		}
	case 7:
		if living > 2 && !m.draining && s.now() >= m.paused {
			m.draining = true
			go func() { _ = m.n.Drain(context.Background()) }()
			synctest.Wait() // it has asked the store
		}
	}
}

// settled returns "" if each lease has a living owner that works on it, and the parts
// differ by at most one.
func (s *simulation) settled() string {
	counts := map[string]int{}
	for _, m := range s.members {
		if !m.dead && !m.draining {
			counts[m.n.info.ID] = 0
		}
	}
	names := []string{}
	for i := range simNumbers {
		names = append(names, leaseName(simGroup, i))
	}
	for j := range simJobs {
		names = append(names, jobGroup(fmt.Sprint("job", j)))
	}
	for i, name := range names {
		l := s.store.leases[name]
		at := slices.IndexFunc(s.members, func(m *member) bool { return m.n.info.ID == l.node })
		if at < 0 || s.members[at].dead || s.members[at].draining || s.members[at].running[name] != l.token {
			return fmt.Sprintf("%s has the owner %q", name, l.node)
		}
		if i < simNumbers {
			counts[l.node]++
		}
	}
	least, most := simNumbers, 0
	for _, c := range counts {
		least, most = min(least, c), max(most, c)
	}
	if most-least > 1 {
		return fmt.Sprintf("parts %v", counts)
	}
	return ""
}

// settle lets time pass without trouble until everything has had an owner for some
// time, and reports how long that took. It fails after bound.
func (s *simulation) settle(bound time.Duration) time.Duration {
	const stable = 8 * time.Second
	s.calm = true
	began, since, starts := s.now(), s.now(), s.starts
	for s.now()-since < stable {
		s.step()
		if s.settled() != "" || s.starts != starts {
			since, starts = s.now(), s.starts
		}
		if s.now()-began > bound+stable {
			s.t.Errorf("not settled after %s: %s", bound, s.settled())
			break
		}
	}
	return since - began
}

// finish ends all goroutines of the bubble.
func (s *simulation) finish() {
	for _, m := range s.members {
		m.dead, m.paused, m.cut = false, 0, 0
		m.n.mu.Lock()
		m.n.draining = true
		for _, sl := range m.n.slots {
			sl.lose()
		}
		m.n.mu.Unlock()
	}
	for range 100 {
		synctest.Wait()
		time.Sleep(2 * restartPause)
		for _, m := range s.members {
			m.nextBeat, m.nextPoll = s.now()+time.Hour, s.now()+time.Hour
			s.calm = true
			s.clock.Add(int64(10 * time.Millisecond))
			s.answer(m)
			s.mu.Lock()
			for _, p := range m.stops {
				close(p.done)
			}
			m.stops = nil
			s.mu.Unlock()
		}
	}
}

// Nodes join, die, pause, drain and lose the database at random, and statements are
// slow, lost, or late. Never may two nodes act on one lease; afterwards every lease
// has an owner soon, parts are balanced, and nothing moves any more.
func TestLeasesHoldThroughTrouble(t *testing.T) {
	t.Parallel()
	seeds := simSeeds(t)
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, seed, 1+int(seed%4))
				for range 600 {
					if s.r.IntN(25) == 0 {
						s.trouble()
					}
					s.step()
				}
				for _, m := range s.members {
					m.paused, m.cut = 0, 0
				}
				// Two statements that hang, the silence of a dead node, and some
				// rounds of giving up and taking.
				took := s.settle(30 * time.Second)
				starts := s.starts
				for end := s.now() + time.Minute; s.now() < end; {
					s.step()
				}
				if s.starts != starts {
					t.Errorf("%d leases moved after all was settled", s.starts-starts)
				}
				t.Logf("settled in %s after %d starts of %d leases by %d nodes", took, starts, simNumbers+simJobs, len(s.members))
				s.finish()
			})
		})
	}
}

// simSeeds returns the seeds: GUIDON_SEED names one, GUIDON_SEEDS their number.
func simSeeds(t *testing.T) (seeds []uint64) {
	number := func(name string, usual uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return usual
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	if one := number("GUIDON_SEED", 0); one != 0 {
		return []uint64{one}
	}
	for i := range number("GUIDON_SEEDS", 40) {
		seeds = append(seeds, i+1)
	}
	return seeds
}

func newSimulation(t *testing.T, seed uint64, nodes int) *simulation {
	s := &simulation{t: t, r: rand.New(rand.NewPCG(seed, 1)), started: map[string]int64{}, store: memory{map[string]nodeRow{}, map[string]leaseRow{}}}
	for range nodes {
		s.join()
	}
	return s
}

// A node that dies moves what it had, and nothing else; a node that joins gets its part
// and nothing moves between the others.
func TestFewLeasesMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 7, 3)
		s.settle(30 * time.Second)
		if s.starts < simNumbers+simJobs {
			t.Fatalf("%d starts", s.starts)
		}
		victim := s.members[1]
		had := len(victim.running)
		if had < simNumbers/3 {
			t.Fatalf("the node has %d leases", had)
		}
		before := s.starts
		victim.dead = true
		took := s.settle(12 * time.Second)
		if s.starts-before != had {
			t.Errorf("%d leases moved, want the %d of the dead node", s.starts-before, had)
		}
		t.Logf("taken over in %s", took)
		before = s.starts
		s.join()
		s.settle(12 * time.Second)
		if moved := s.starts - before; moved != simNumbers/3 {
			t.Errorf("%d leases moved, want %d", moved, simNumbers/3)
		}
		s.finish()
	})
}
