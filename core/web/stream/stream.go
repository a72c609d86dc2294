// Package stream sends answers without an end to many clients: server-sent events.
//
// The HTTP library keeps a goroutine with a deep stack, a request and buffers of
// 20 KiB and more for each answer that is being written. A stream therefore takes
// its connection from the library after the head of the answer is sent, and
// keeps nothing but the connection and one goroutine with a small stack, which
// notices the end of the connection: about 5 KiB.
//
// A write does not wait for a client. The buffers of the system take what is
// written to a client that reads; what they do not take at once is written by a
// goroutine of its own, and a stream whose client does not read for some seconds
// ends.
package stream

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/listener"
	"github.com/guidonhq/guidon/core/web/receive"
)

// Bounds of writes.
const (
	inlineTime = 50 * time.Millisecond // of the first attempt
	lateTime   = 5 * time.Second       // of the goroutine that writes the rest
	maxLate    = 64 << 10              // bytes that wait
)

// ErrNoConn means that a request has no connection of its own, as in tests of
// handlers.
var ErrNoConn = errors.New("the request has no connection to stream to")

// Stream is one open stream. Its methods are safe for concurrent use.
type Stream struct {
	mu     sync.Mutex
	conn   *listener.Conn
	closed bool
	late   []byte // waits for the goroutine that writes; nil without one
	// flushed is closed at the end of that goroutine; nil before the first one.
	flushed chan struct{}
}

// Open sends the head of ctx.Response and then calls opened with the stream, in a
// goroutine of the connection; opened must not wait. The function that it returns
// is called once, after every end of the stream. The body of the
// response is ignored. Open must be the last use of ctx by its handler.
func Open(ctx *fasthttp.RequestCtx, opened func(*Stream) (ended func())) error {
	conn := receive.Conn(ctx)
	if conn == nil {
		return ErrNoConn
	}
	h := &ctx.Response.Header
	h.SetContentType("text/event-stream")
	h.Set(fasthttp.HeaderCacheControl, "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx
	h.SetContentLength(-2)           // the body ends with the connection
	ctx.HijackSetNoResponse(true)
	head := append([]byte(nil), h.Header()...)
	ctx.Hijack(func(net.Conn) {
		conn.Detach()
		s := &Stream{conn: conn}
		s.Write(head)
		go s.watch(opened(s))
	})
	return nil
}

// Write sends p, without waiting for the client. It returns false if the stream
// has ended, also because the client does not read.
func (s *Stream) Write(p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case s.late != nil && len(s.late)+len(p) > maxLate:
		s.closeLocked()
		return false
	case s.late != nil:
		s.late = append(s.late, p...)
		return true
	case s.conn.Encrypted(): // TLS does not survive a write that is given up
		s.writeLate(p)
		return true
	}
	n, err := 0, s.conn.SetWriteDeadline(time.Now().Add(inlineTime))
	if err == nil {
		n, err = s.conn.Write(p)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // or this goroutine had to wait for a processor
		s.writeLate(p[n:])
	case err != nil:
		s.closeLocked()
	}
	return !s.closed
}

// Send sends p and waits for the client until the time limit. It returns false if the
// stream has ended, also because the client did not read in time. One goroutine calls it,
// and no other writes meanwhile; Close ends a call.
func (s *Stream) Send(p []byte, limit time.Duration) bool {
	s.mu.Lock()
	flushed := s.flushed
	s.mu.Unlock()
	if flushed != nil {
		<-flushed
	}
	if s.isClosed() {
		return false
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(limit))
	if err == nil {
		_, err = s.conn.Write(p)
	}
	if err != nil {
		s.Close()
	}
	return err == nil
}

func (s *Stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// writeLate starts a goroutine that writes p and what follows it.
func (s *Stream) writeLate(p []byte) {
	s.late, s.flushed = []byte{}, make(chan struct{})
	go s.flush(slices.Clone(p), s.flushed)
}

func (s *Stream) flush(p []byte, flushed chan struct{}) {
	defer close(flushed)
	for {
		err := s.conn.SetWriteDeadline(time.Now().Add(lateTime))
		if err == nil {
			_, err = s.conn.Write(p)
		}
		s.mu.Lock()
		if err != nil {
			s.closeLocked()
		}
		if p = s.late; len(p) == 0 || s.closed {
			s.late = nil
			s.mu.Unlock()
			return
		}
		s.late = []byte{}
		s.mu.Unlock()
	}
}

// Close ends the stream.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *Stream) closeLocked() {
	if !s.closed {
		s.closed = true
		_ = s.conn.Close()
	}
}

// maxReads bounds what a client may send to a stream. Nothing is expected.
const maxReads = 64

// watch ends the stream with its connection.
func (s *Stream) watch(ended func()) {
	var b [1]byte
	for range maxReads {
		if _, err := s.conn.Read(b[:]); err != nil {
			break
		}
	}
	s.Close()
	ended()
}
