// Package notify wakes other nodes of a cluster: a change that one node publishes
// reaches the subscribers of all nodes within milliseconds, through LISTEN and NOTIFY
// of Postgres. Each node listens on one connection for all topics.
//
// A notification is a hint. It can be lost: while the connection is away, when a
// subscriber is slow, behind a connection pooler that does not support LISTEN. So
// every subscriber also polls, and nothing depends on a notification. After each new
// connection every subscriber gets an empty payload, because it may have missed some.
//
// Publish never takes part in a transaction: the commit of a transaction with NOTIFY
// takes a lock of the whole database. Publish after the commit (db.DB.AfterCommit).
//
// Without a cluster notifications stay in the process and the database is not used.
package notify

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/wake"
	"github.com/guidonhq/guidon/core/retry"
)

const (
	// channel is the channel of Postgres, with all topics.
	channel = "guidon"
	// maxPayload is the most bytes of a payload; Postgres takes less than 8,000
	// with the topic.
	maxPayload = 4096
	// maxPending bounds what waits to be sent. More is dropped.
	maxPending = 1024
	// buffered is how many payloads wait for a subscriber.
	buffered = 64
	// sendTimeout bounds one attempt to send; what could not be sent is dropped.
	sendTimeout = 2 * time.Second
)

// Hub sends and receives notifications. Its methods may be called from many
// goroutines at once.
type Hub struct {
	db      *db.DB // nil: within the process
	sender  string // of this Hub, to skip its own notifications
	log     *zap.Logger
	service retry.Service
	wake    chan struct{}
	wakes   *wake.Wakes // nil without Connect

	mu          sync.Mutex
	subscribers map[string]map[chan string]bool
	pending     []string
	queued      map[string]bool // what pending has
}

// New returns a Hub. Without d, or with a SQLite database, notifications stay in the
// process.
func New(d *db.DB, log *zap.Logger) *Hub {
	if d != nil && d.Pool() == nil {
		d = nil
	}
	return &Hub{
		db: d, sender: uuid.NewString(), log: log.Named("notify"), wake: make(chan struct{}, 1),
		subscribers: map[string]map[chan string]bool{}, queued: map[string]bool{},
	}
}

// wakeTopic is the topic of what changed, with its name as the payload.
const wakeTopic = "changed"

// Connect carries the wake-ups of w between nodes while the Hub runs. It must be called
// before Start.
func (h *Hub) Connect(w *wake.Wakes) {
	h.wakes = w
	w.Connect(func(name string) { h.Publish(wakeTopic, name) })
}

// wakeFollowers passes the wake-ups of all nodes on until ctx ends.
func (h *Hub) wakeFollowers(ctx context.Context, names <-chan string) {
	for {
		select {
		case name := <-names:
			h.wakes.Receive(name)
		case <-ctx.Done():
			return
		}
	}
}

// Start begins to listen and to send, unless notifications stay in the process.
func (h *Hub) Start(context.Context) error {
	if h.db == nil {
		return nil
	}
	h.service.Start()
	if h.wakes != nil {
		names, cancel := h.Subscribe(wakeTopic)
		h.service.Go(func(ctx, _ context.Context) {
			defer cancel()
			h.wakeFollowers(ctx, names)
		})
	}
	h.service.Go(func(ctx, _ context.Context) { h.listen(ctx) })
	h.service.Go(func(ctx, _ context.Context) { h.send(ctx) })
	return nil
}

// Stop sends pending notifications and ends the connection.
func (h *Hub) Stop(ctx context.Context) error { return h.service.Stop(ctx) }

// Subscribe returns a channel that receives the payloads of a topic that any node
// publishes, this one included. An empty payload means that anything may have
// changed: after a new connection, and instead of payloads that did not fit when the
// subscriber was slow. cancel ends the subscription; it does not close the channel.
func (h *Hub) Subscribe(topic string) (payloads <-chan string, cancel func()) {
	c := make(chan string, buffered)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers[topic] == nil {
		h.subscribers[topic] = map[chan string]bool{}
	}
	h.subscribers[topic][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subscribers[topic], c)
	}
}

// Publish delivers payload to the subscribers of topic: to those in this process at
// once, to other nodes soon. It does not block. A topic has no spaces. A payload of
// more than 4 KiB arrives empty. Equal notifications that wait are sent once.
func (h *Hub) Publish(topic, payload string) {
	if len(payload) > maxPayload {
		payload = ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliver(topic, payload)
	if h.db == nil {
		return
	}
	text := h.sender + " " + topic + " " + payload
	if h.queued[text] || len(h.pending) >= maxPending {
		return
	}
	h.queued[text] = true
	h.pending = append(h.pending, text)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// deliver is called with mu.
func (h *Hub) deliver(topic, payload string) {
	for c := range h.subscribers[topic] {
		select {
		case c <- payload:
			continue
		default:
		}
		select { // full: the oldest makes room for "anything"
		case <-c:
		default:
		}
		select {
		case c <- "":
		default:
		}
	}
}

// receive delivers a notification of another node.
func (h *Hub) receive(text string) {
	sender, rest, ok := strings.Cut(text, " ")
	topic, payload, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || sender == h.sender {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliver(topic, payload)
}

// listen keeps a connection until ctx ends.
func (h *Hub) listen(ctx context.Context) {
	backoff := retry.Backoff{Min: 250 * time.Millisecond, Max: 5 * time.Second}
	for away := false; ctx.Err() == nil; {
		err := listenOnce(ctx, h.db, func() {
			backoff.Reset()
			if away {
				h.log.Info("listening again")
			}
			away = false
			h.deliverAll()
		}, h.receive)
		if ctx.Err() == nil && !away && h.db.IsReady() {
			away = true
			h.log.Warn("connection for notifications lost: polling goes on", zap.Error(err))
		}
		backoff.Sleep(ctx)
	}
}

// deliverAll gives every subscriber an empty payload.
func (h *Hub) deliverAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for topic := range h.subscribers {
		h.deliver(topic, "")
	}
}

// send sends pending notifications until ctx ends, and then once more.
func (h *Hub) send(ctx context.Context) {
	for {
		select {
		case <-h.wake:
		case <-ctx.Done():
			h.flush(context.WithoutCancel(ctx))
			return
		}
		h.flush(ctx)
	}
}

func (h *Hub) flush(ctx context.Context) {
	h.mu.Lock()
	texts := h.pending
	h.pending = nil
	clear(h.queued)
	h.mu.Unlock()
	if len(texts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := publish(ctx, h.db, texts); err != nil {
		h.log.Debug("notifications dropped", zap.Int("count", len(texts)), zap.Error(err))
	}
}
