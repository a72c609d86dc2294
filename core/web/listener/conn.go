package listener

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// handshakeTime bounds a TLS handshake.
const handshakeTime = 10 * time.Second

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn              // the TLS connection, or the raw one
	raw          net.Conn // of the system
	tls          *tls.Conn
	listener     *Listener
	client       netip.Addr // for the limit of a client; zero without one
	readDeadline deadline
	received     atomic.Bool
	drains       atomic.Bool
	detached     atomic.Bool

	// waiting is 0 while a request is handled. While the connection waits for the
	// client it is the time since it does, in nanoseconds: positive between two
	// requests, negative inside of one.
	waiting atomic.Int64
	// inRequest and begun belong to the goroutine that serves the connection.
	inRequest  bool
	begun      int64
	handshaken bool
	ended      bool
}

// Ended reports whether a Read has found the end of the input: the client has
// closed its side. It is for the goroutine that reads.
func (c *Conn) Ended() bool { return c.ended }

// Received reports whether the client has sent anything of a request.
func (c *Conn) Received() bool { return c.received.Load() }

// Detach takes the connection from the HTTP server, for an answer without an end.
// It still counts against the bounds. It does not give way to other connections,
// and a stop closes it at once (CloseUnused).
func (c *Conn) Detach() { c.detached.Store(true) }

// Encrypted reports whether the connection has TLS.
func (c *Conn) Encrypted() bool { return c.tls != nil }

// DrainOnClose sets whether Close reads what the client is still sending. Use
// it when a request is rejected before its end.
func (c *Conn) DrainOnClose(drain bool) { c.drains.Store(drain) }

// Read reads from the client. The first call does the TLS handshake.
func (c *Conn) Read(p []byte) (int, error) {
	if c.detached.Load() {
		return c.Conn.Read(p)
	}
	if c.inRequest {
		c.waiting.Store(-c.begun)
	} else {
		c.begun = time.Now().UnixNano()
		c.waiting.Store(c.begun)
	}
	n, err := c.read(p)
	if n > 0 && !c.inRequest {
		c.inRequest, c.begun = true, time.Now().UnixNano()
		if !c.received.Load() {
			c.received.Store(true)
		}
	}
	c.ended = c.ended || errors.Is(err, io.EOF)
	c.waiting.Store(0)
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	if c.tls != nil && !c.handshaken {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	for n == 0 && c.readDeadline.postpone(err) {
		if err = c.Conn.SetReadDeadline(c.readDeadline.set); err == nil {
			n, err = c.Conn.Read(p)
		}
	}
	return n, err
}

func (c *Conn) handshake() error {
	c.handshaken = true
	if err := c.raw.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if err := c.tls.Handshake(); err != nil {
		return err
	}
	if err := c.raw.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return c.raw.SetReadDeadline(c.readDeadline.set)
}

// Write writes to the client. What the client sends after it belongs to the next
// request.
func (c *Conn) Write(p []byte) (int, error) {
	c.inRequest = false
	return c.Conn.Write(p)
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
	c.listener.remove(c)
	if c.detached.Load() {
		return c.raw.Close() // the end of a TLS connection would wait for the client
	}
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
