package web

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lingering is how long a connection that was refused in mid-request is read
// and thrown away, so that the client gets to see why: closing a connection
// with unread bytes in it destroys the answer on its way.
const (
	lingering      = 2 * time.Second
	lingeringBytes = 64 << 20
)

// listener knows its open connections, so that a stop can be bounded.
type listener struct {
	net.Listener
	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed sync.Once
}

func newListener(ln net.Listener) *listener {
	return &listener{Listener: ln, conns: map[*conn]struct{}{}}
}

// Accept waits for the next connection. When the system has no more room for
// one it tries again after a while, instead of giving up for ever.
func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	for pause := 5 * time.Millisecond; passing(err); pause = min(2*pause, time.Second) {
		time.Sleep(pause)
		nc, err = l.Listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, from: l}
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// passing reports whether err is a shortage of the system that can end.
func passing(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close takes no more connections; those that are open stay. Closing again
// does nothing.
func (l *listener) Close() error {
	var err error
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// closeSilent closes the connections on which nothing was ever sent: there is
// no request to wait for.
func (l *listener) closeSilent() {
	for _, c := range l.open() {
		if !c.spoke.Load() {
			_ = c.Conn.Close()
		}
	}
}

// closeAll closes every connection, whatever it is doing.
func (l *listener) closeAll() {
	for _, c := range l.open() {
		_ = c.Conn.Close()
	}
}

func (l *listener) open() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		out = append(out, c)
	}
	return out
}

// conn is a connection that can end politely.
type conn struct {
	net.Conn
	from   *listener
	until  deadline
	spoke  atomic.Bool
	linger atomic.Bool
}

// Read reads from the client.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n == 0 && c.until.later(err) {
		if err = c.Conn.SetReadDeadline(c.until.set); err == nil {
			n, err = c.Conn.Read(p)
		}
	}
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
	}
	return n, err
}

// SetReadDeadline bounds the reads that follow.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.until.want(t) {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline bounds the reads and the writes that follow.
func (c *conn) SetDeadline(t time.Time) error {
	c.until.set, c.until.wanted = t, t
	return c.Conn.SetDeadline(t)
}

// Close ends the connection, after what the client is still sending when the
// request was refused before its end.
func (c *conn) Close() error {
	c.from.mu.Lock()
	delete(c.from.conns, c)
	c.from.mu.Unlock()
	if c.linger.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingeringBytes)
}
