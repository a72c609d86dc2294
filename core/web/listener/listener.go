// Package listener accepts TCP connections for an HTTP server whose stop must
// be bounded.
//
// It tracks the open connections, so that a stop can close idle ones at its
// begin and all of them at its end. A connection whose request was rejected
// before its last byte is drained before it closes: closing a socket with
// unread data destroys the answer on its way. Read deadlines are set lazily,
// because an HTTP server moves them before every request.
package listener

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of the draining of a rejected connection.
const (
	drainTime  = 2 * time.Second
	drainBytes = 64 << 20
)

// Listener tracks its open connections.
type Listener struct {
	net.Listener
	mu     sync.Mutex
	conns  map[*Conn]struct{}
	closed sync.Once
}

// New returns a Listener on ln.
func New(ln net.Listener) *Listener {
	return &Listener{Listener: ln, conns: map[*Conn]struct{}{}}
}

// Accept waits for the next connection. It retries while the system is short
// of descriptors or memory.
func (l *Listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	for pause := 5 * time.Millisecond; isTemporary(err); pause = min(2*pause, time.Second) {
		time.Sleep(pause)
		nc, err = l.Listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: nc, listener: l}
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// isTemporary reports whether err is a shortage of the system that can end.
func isTemporary(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close stops accepting; open connections stay. Further calls do nothing.
func (l *Listener) Close() error {
	var err error
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// CloseUnused closes the connections that have received nothing: they carry no
// request to wait for.
func (l *Listener) CloseUnused() {
	for _, c := range l.open() {
		if !c.Received() {
			_ = c.Conn.Close()
		}
	}
}

// CloseAll closes every connection at once, also in the middle of a request.
func (l *Listener) CloseAll() {
	for _, c := range l.open() {
		_ = c.Conn.Close()
	}
}

func (l *Listener) open() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		out = append(out, c)
	}
	return out
}

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	listener     *Listener
	readDeadline deadline
	received     atomic.Bool
	drains       atomic.Bool
	ended        bool
}

// Ended reports whether a Read has found the end of the input: the client has
// closed its side. It is for the goroutine that reads.
func (c *Conn) Ended() bool { return c.ended }

// Received reports whether the client has sent anything.
func (c *Conn) Received() bool { return c.received.Load() }

// DrainOnClose sets whether Close reads what the client is still sending. Use
// it when a request is rejected before its end.
func (c *Conn) DrainOnClose(drain bool) { c.drains.Store(drain) }

// Read reads from the client.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n == 0 && c.readDeadline.postpone(err) {
		if err = c.Conn.SetReadDeadline(c.readDeadline.set); err == nil {
			n, err = c.Conn.Read(p)
		}
	}
	if n > 0 && !c.received.Load() {
		c.received.Store(true)
	}
	c.ended = c.ended || errors.Is(err, io.EOF)
	return n, err
}

// SetReadDeadline bounds the following reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.readDeadline.want(t) {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline bounds the following reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readDeadline = deadline{set: t, wanted: t}
	return c.Conn.SetDeadline(t)
}

// Close closes the connection, after draining it if DrainOnClose was set.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	if c.drains.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

func (c *Conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, drainBytes)
}
