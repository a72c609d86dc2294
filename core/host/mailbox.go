package host

import (
	"sync"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
)

// mailbox carries messages to the goroutine of a supervisor. Messages of one kind
// replace each other; post never blocks.
type mailbox struct {
	wake chan struct{} // receives after each message

	mu       sync.Mutex
	messages messages
}

// messages are the messages since the last take.
type messages struct {
	config        bool               // the target has changed
	release       bool               // the operator requests another try
	suspectReason string             // calls fail: check the process
	reopenReason  string             // the plugin lost its connection
	failure       *lifecycle.Failure // the session must end: a rejected config, calls without an answer
	session       *conn.Session      // the session of the last three
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post writes a message and wakes the supervisor.
func (b *mailbox) post(write func(*messages)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	write(&b.messages)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// postFor writes a message about a session.
func (b *mailbox) postFor(s *conn.Session, write func(*messages)) {
	b.post(func(m *messages) {
		write(m)
		m.session = s
	})
}

// take returns and clears the messages, without those about another session.
func (b *mailbox) take(s *conn.Session) messages {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.messages
	b.messages = messages{}
	if m.session != s {
		m.suspectReason, m.reopenReason, m.failure = "", "", nil
	}
	return m
}
