//go:build e2e

package e2e_test

import (
	"net"
	"sync"
	"testing"
)

// linkState is what a link does with connections.
type linkState int

const (
	linkOpen    linkState = iota
	linkRefused           // connections end
	linkStalled           // connections stay, and no byte passes
)

// link is the network between a node and a server: a proxy that is cut.
type link struct {
	address         string
	network, target string

	mu    sync.Mutex
	moved sync.Cond // the state has changed
	state linkState
	conns map[net.Conn]bool
}

// newLink returns an open link to the target, which ends with the test.
func newLink(t *testing.T, network, target string) *link {
	t.Helper()
	l := &link{address: stableAddress(t), network: network, target: target, conns: map[net.Conn]bool{}}
	l.moved.L = &l.mu
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(linkRefused)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(conn)
		}
	}()
	return l
}

// set changes what the link does.
func (l *link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	l.moved.Broadcast()
	if s == linkRefused {
		for conn := range l.conns {
			_ = conn.Close()
		}
	}
}

// pass waits while the link is stalled and reports whether it is open.
func (l *link) pass() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.state == linkStalled {
		l.moved.Wait()
	}
	return l.state == linkOpen
}

// keep notes connections to close. It reports whether the link is open.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		l.conns[conn] = true
	}
	return l.state != linkRefused
}

func (l *link) drop(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(l.conns, conn)
	}
}

// forward connects a node with the target until one of them ends the connection.
func (l *link) forward(node net.Conn) {
	defer l.drop(node)
	if !l.keep(node) || !l.pass() {
		return
	}
	target, err := net.Dial(l.network, l.target)
	if err != nil {
		return
	}
	defer l.drop(target)
	if !l.keep(target) {
		return
	}
	var both sync.WaitGroup
	pump := func(to, from net.Conn) {
		defer l.drop(to, from)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if !l.pass() {
				return
			}
			if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
		}
	}
	both.Go(func() { pump(target, node) })
	both.Go(func() { pump(node, target) })
	both.Wait()
}
