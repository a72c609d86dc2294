// Package listener accepts connections for an HTTP server that must not be
// stopped by its clients, and whose own stop must be bounded.
//
// It tracks the open connections, so that a stop can close idle ones at its
// begin and all of them at its end. It bounds them: in total, by what the
// process may open, and for each client. At the bound the connection that has
// idled the longest gives way, so that idle connections never keep others out;
// then one that has been sending its request for too long. When the system runs
// out of descriptors, idle connections give way, too, and accepting goes on.
//
// A connection whose request was rejected before its last byte is drained
// before it closes: closing a socket with unread data destroys the answer on its
// way. Read deadlines are set lazily, because an HTTP server moves them before
// every request. With a TLS configuration the connections are encrypted.
package listener

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Bounds of the draining of a rejected connection.
const (
	drainTime  = 2 * time.Second
	drainBytes = 64 << 20
)

// slowRequest is the time after which a request that is still being received may
// be given up for a new connection.
const slowRequest = 5 * time.Second

// Reasons for which connections are refused or closed.
const (
	ReasonTotal  = "connections"        // the bound of all connections
	ReasonClient = "client_connections" // the bound of one client
	ReasonIdle   = "idle_connection"    // it gave way to a new connection
)

// Options are the bounds of a Listener. The zero value has none.
type Options struct {
	// TLS encrypts the connections; nil: plain TCP.
	TLS *tls.Config
	// MaxConnections bounds the open connections; 0: no bound.
	MaxConnections int
	// PerClient bounds the open connections of one client: an IPv4 address or a /64
	// network of IPv6. 0: no bound.
	PerClient int
	// Exempt reports whether an address, such as that of a proxy, has no bound of
	// its own. Nil: none is exempt.
	Exempt func(netip.Addr) bool
	// Refused is called with the reason for each connection that is refused or
	// closed for a bound. It may be nil.
	Refused func(reason string)
	// Failed is called with each error of Accept that it retries. It may be nil.
	Failed func(error)
}

// Listener tracks its open connections.
type Listener struct {
	net.Listener
	opts    Options
	mu      sync.Mutex
	conns   map[*Conn]struct{}
	clients map[netip.Addr]int // open connections, of clients with a bound
	closed  sync.Once
}

// Split divides the connections that a process may have among its clients and
// its operators. The operators have those that are wanted for them, and at most a
// quarter. Each has at least one.
func Split(all, wanted int) (clients, operators int) {
	operators = max(1, min(wanted, all/4))
	return max(1, all-operators), operators
}

// New returns a Listener on ln.
func New(ln net.Listener, opts Options) *Listener {
	if opts.Refused == nil {
		opts.Refused = func(string) {}
	}
	if opts.Failed == nil {
		opts.Failed = func(error) {}
	}
	return &Listener{Listener: ln, opts: opts, conns: map[*Conn]struct{}{}, clients: map[netip.Addr]int{}}
}

// Accept waits for the next connection within the bounds. It retries while the
// system is short of descriptors or memory.
func (l *Listener) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			if c := l.admit(nc); c != nil {
				return c, nil
			}
		case !isTemporary(err):
			return nil, err
		default:
			l.opts.Failed(err)
			l.giveWay()
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
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

// admit tracks a new connection, or refuses it and returns nil.
func (l *Listener) admit(nc net.Conn) *Conn {
	c := &Conn{Conn: nc, raw: nc, listener: l, client: l.boundedClient(nc)}
	if l.opts.TLS != nil {
		c.tls = tls.Server(nc, l.opts.TLS)
		c.Conn = c.tls
	}
	l.mu.Lock()
	refused, victims := "", []*Conn(nil)
	if c.client.IsValid() && l.clients[c.client] >= l.opts.PerClient {
		refused = ReasonClient
	} else if l.opts.MaxConnections > 0 && len(l.conns) >= l.opts.MaxConnections {
		if victims = l.oldestWaiting(); len(victims) == 0 {
			refused = ReasonTotal
		}
	}
	if refused == "" {
		l.conns[c] = struct{}{}
		if c.client.IsValid() {
			l.clients[c.client]++
		}
	}
	l.mu.Unlock()
	l.closeAll(victims)
	if refused != "" {
		l.refuse(nc, refused)
		return nil
	}
	return c
}

// boundedClient returns the client of a connection, zero without a bound.
func (l *Listener) boundedClient(nc net.Conn) netip.Addr {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok || l.opts.PerClient == 0 {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if l.opts.Exempt != nil && l.opts.Exempt(a) {
		return netip.Addr{}
	}
	return Client(a)
}

// Client returns the address that stands for a client: of IPv6 the /64 network,
// of which one client has all addresses.
func Client(a netip.Addr) netip.Addr {
	if p, err := a.Prefix(64); err == nil && a.Is6() {
		return p.Addr()
	}
	return a
}

var answers = map[string][]byte{
	ReasonTotal:  []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
	ReasonClient: []byte("HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
}

// refuse closes a new connection. Without TLS it answers first: the few bytes fit
// into the buffer of the socket.
func (l *Listener) refuse(nc net.Conn, reason string) {
	l.opts.Refused(reason)
	if l.opts.TLS == nil && nc.SetWriteDeadline(time.Now().Add(50*time.Millisecond)) == nil {
		_, _ = nc.Write(answers[reason])
	}
	_ = nc.Close()
}

// giveWay closes the connections that have idled the longest.
func (l *Listener) giveWay() {
	l.mu.Lock()
	victims := l.oldestWaiting()
	l.mu.Unlock()
	l.closeAll(victims)
}

func (l *Listener) closeAll(victims []*Conn) {
	for _, c := range victims {
		l.opts.Refused(ReasonIdle)
		_ = c.raw.Close()
	}
}

// oldestWaiting removes and returns the connections that are to give way: of
// those between two requests the one that has waited the longest, and more of
// them if there are many, so that a flood does not search for each connection.
// Without any it takes one that has been sending a request for too long. The
// caller holds mu.
func (l *Listener) oldestWaiting() []*Conn {
	type waiter struct {
		conn  *Conn
		since int64
	}
	var idle []waiter
	var slow waiter
	for c := range l.conns {
		switch since := c.waiting.Load(); {
		case since > 0:
			idle = append(idle, waiter{c, since})
		case since < 0 && (slow.conn == nil || -since < slow.since):
			slow = waiter{c, -since}
		}
	}
	var out []*Conn
	if len(idle) > 0 {
		slices.SortFunc(idle, func(a, b waiter) int { return cmp.Compare(a.since, b.since) })
		for _, w := range idle[:1+len(idle)/64] {
			out = append(out, w.conn)
		}
	} else if slow.conn != nil && time.Since(time.Unix(0, slow.since)) > slowRequest {
		out = append(out, slow.conn)
	}
	for _, c := range out {
		l.removeLocked(c)
	}
	return out
}

// remove forgets a connection.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(c)
}

func (l *Listener) removeLocked(c *Conn) {
	if _, ok := l.conns[c]; !ok {
		return
	}
	delete(l.conns, c)
	if !c.client.IsValid() {
		return
	}
	if l.clients[c.client]--; l.clients[c.client] == 0 {
		delete(l.clients, c.client)
	}
}

// Open returns the number of open connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Close stops accepting; open connections stay. Further calls do nothing.
func (l *Listener) Close() error {
	var err error
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// CloseUnused closes the connections that carry no request to wait for: those
// that have received nothing, and detached ones.
func (l *Listener) CloseUnused() {
	for _, c := range l.open() {
		if !c.Received() || c.detached.Load() {
			_ = c.raw.Close()
		}
	}
}

// CloseAll closes every connection at once, also in the middle of a request.
func (l *Listener) CloseAll() {
	for _, c := range l.open() {
		_ = c.raw.Close()
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
