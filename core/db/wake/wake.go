// Package wake wakes the pollers of this process after another node of a cluster has
// changed something, so that they look at once and not at their next interval.
//
// A store publishes a topic after the commit of a change (db.DB.AfterCommit), a poller
// follows it. core/cluster/notify carries topics between nodes. A wake-up has no
// content: the poller reads the revision from the database as it does at each
// interval. So a wake-up may be lost, or come twice, or come without a change, and
// polling finds what was missed.
//
// Without Connect nothing is published and no follower is woken.
package wake

import "sync"

// Wakes has the topics of one database. The zero value is ready to use. Its methods
// and those of its topics are safe for concurrent use.
type Wakes struct {
	// Flags are the revisions of flags, cohorts and group types.
	Flags Topic
	// Actions are the revisions of actions.
	Actions Topic
	// Accounts is the version of projects, keys, users and roles.
	Accounts Topic
	// Plugins is the configuration of plugins by the API.
	Plugins Topic
}

// Names of the topics between nodes. Nodes of two versions may run side by side.
const (
	flags    = "flags"
	actions  = "actions"
	accounts = "accounts"
	plugins  = "plugins"
)

func (w *Wakes) topics() map[string]*Topic {
	return map[string]*Topic{flags: &w.Flags, actions: &w.Actions, accounts: &w.Accounts, plugins: &w.Plugins}
}

// Connect makes send receive the name of each topic that is published. send must not
// block.
func (w *Wakes) Connect(send func(name string)) {
	for name, t := range w.topics() {
		t.connect(func() { send(name) })
	}
}

// Receive wakes the followers of a topic, or of all topics for an empty name. A name
// that this version does not know has no effect.
func (w *Wakes) Receive(name string) {
	for own, t := range w.topics() {
		if name == own || name == "" {
			t.wake()
		}
	}
}

// Topic is something that changes.
type Topic struct {
	mu        sync.Mutex
	send      func() // nil without a cluster
	followers []chan struct{}
}

// Publish wakes the followers of the topic on all nodes, this one included. It does not
// block. Call it after the commit.
func (t *Topic) Publish() {
	t.mu.Lock()
	send := t.send
	t.mu.Unlock()
	if send != nil {
		send()
	}
}

// Follow returns a channel that receives after changes of the topic. It holds one
// wake-up: those that come before it is read are one. It is never closed.
func (t *Topic) Follow() <-chan struct{} {
	c := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followers = append(t.followers, c)
	return c
}

func (t *Topic) connect(send func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.send = send
}

func (t *Topic) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.followers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
