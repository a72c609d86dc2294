package cluster

import (
	"context"
)

// slot is a lease that the node works on.
type slot struct {
	name  string
	token int64
	group string
	job   bool

	own  context.Context // ends when the lease is lost, and when the work has ended
	lose context.CancelFunc
	keep context.Context // ends when the lease is lost or given up

	giveUp    context.CancelFunc
	releasing bool // the work has ended; with the mutex of the node
}

func newSlot(name string, token int64, o offer) *slot {
	s := &slot{name: name, token: token, group: o.group, job: o.job}
	s.own, s.lose = context.WithCancel(context.Background())
	s.keep, s.giveUp = context.WithCancel(s.own)
	return s
}

// work runs the work of a slot to its end and frees the lease, unless it is lost.
func (n *Node) work(o offer, number int, s *slot) {
	o.start(number, s)
	n.mu.Lock()
	lost := s.own.Err() != nil
	s.releasing = true
	n.mu.Unlock()
	if !lost {
		// After an error the lease is this node's without a slot: poll releases it.
		_ = n.store.release(context.Background(), leaseRow{s.name, n.info.ID, s.token})
		n.wake.Publish(topic, "")
	}
	s.lose()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.slots, s.name)
	if n.empty != nil && len(n.slots) == 0 {
		close(n.empty)
		n.empty = nil
	}
	n.pollSoon()
}

// lease is the held of the contexts of jobs.
type lease struct {
	n *Node
	s *slot
}

func (l lease) valid() bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return l.n.valid(l.s)
}

func (l lease) fence(ctx context.Context) error {
	if !l.valid() {
		return ErrLost
	}
	switch ok, err := l.n.store.fence(ctx, leaseRow{l.s.name, l.n.info.ID, l.s.token}); {
	case err != nil:
		return err
	case !ok:
		return ErrLost
	}
	return nil
}
