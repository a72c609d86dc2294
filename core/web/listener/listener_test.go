package listener_test

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/listener"
)

// serve answers every request on a listener with opts, except /hang, which waits
// until the test ends.
func serve(t *testing.T, ln net.Listener, opts listener.Options) *listener.Listener {
	t.Helper()
	l := listener.New(ln, opts)
	hang := make(chan struct{})
	s := &fasthttp.Server{IdleTimeout: time.Hour, Logger: silent{}, Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/hang" {
			<-hang
		}
	}}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { close(hang); _ = l.Close(); l.CloseAll(); <-done })
	return l
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func tcp(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// client is a connection whose server may close it.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, l net.Listener) *client {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &client{c, bufio.NewReader(c)}
}

// ask sends a request and returns the first line of the answer.
func (c *client) ask(path string) string {
	if _, err := c.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return err.Error()
	}
	first := ""
	for {
		line, err := c.in.ReadString('\n')
		if first == "" {
			first = strings.TrimSpace(line)
		}
		if err != nil || line == "\r\n" {
			return first
		}
	}
}

func (c *client) isClosed() bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := c.in.ReadByte()
	return err != nil && !errors.Is(err, syscall.ETIMEDOUT)
}

const ok = "HTTP/1.1 200 OK"

// At the total bound, idle connections give way: a new client is always answered.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	l := serve(t, tcp(t), listener.Options{MaxConnections: 20, Refused: func(reason string) {
		if reason == listener.ReasonIdle {
			refused.Add(1)
		}
	}})
	first := dial(t, l)
	if got := first.ask("/"); got != ok {
		t.Fatal(got)
	}
	busy := dial(t, l)
	go busy.ask("/hang")
	for n := range 200 {
		if got := dial(t, l).ask("/"); got != ok {
			t.Fatalf("connection %d: %s", n, got)
		}
	}
	if !first.isClosed() {
		t.Error("the connection that idled the longest is open")
	}
	if n := l.Open(); n > 20 {
		t.Errorf("%d connections are open, want at most 20", n)
	}
	if refused.Load() < 180 {
		t.Errorf("%d connections gave way", refused.Load())
	}
}

// Connections with a request at hand do not give way.
func TestBusyConnectionsStay(t *testing.T) {
	t.Parallel()
	l := serve(t, tcp(t), listener.Options{MaxConnections: 3})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		go dial(t, l).ask("/hang") // one whose request has not arrived gives way to the next
		c := dial(t, l)
		got := c.ask("/")
		_ = c.Close()
		if got == "HTTP/1.1 503 Service Unavailable" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the fourth connection is answered with %s", got)
		}
	}
}

func TestConnectionsOfOneClient(t *testing.T) {
	t.Parallel()
	for name, exempt := range map[string]bool{"bounded": false, "exempt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := serve(t, tcp(t), listener.Options{PerClient: 5, Exempt: func(a netip.Addr) bool { return exempt && a.IsLoopback() }})
			open := make([]*client, 5)
			for i := range open {
				open[i] = dial(t, l)
				if got := open[i].ask("/"); got != ok {
					t.Fatal(got)
				}
			}
			want := "HTTP/1.1 429 Too Many Requests"
			if exempt {
				want = ok
			}
			if got := dial(t, l).ask("/"); got != want && exempt {
				t.Errorf("the sixth connection: %s, want %s", got, want)
			} else if got == ok && !exempt {
				t.Error("the sixth connection was answered")
			}
			_ = open[0].Close()
			for deadline := time.Now().Add(time.Minute); dial(t, l).ask("/") != ok; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a closed connection still counts")
				}
			}
		})
	}
}

// shortListener fails as a process without free descriptors does.
type shortListener struct {
	net.Listener
	left atomic.Int64
}

func (s *shortListener) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// A lack of descriptors is reported, idle connections give way, and accepting goes
// on.
func TestLackOfDescriptors(t *testing.T) {
	t.Parallel()
	var failed atomic.Int64
	short := &shortListener{Listener: tcp(t)}
	l := serve(t, short, listener.Options{Failed: func(err error) {
		if errors.Is(err, syscall.EMFILE) {
			failed.Add(1)
		}
	}})
	idle := dial(t, l)
	if got := idle.ask("/"); got != ok {
		t.Fatal(got)
	}
	short.left.Store(3)
	if got := dial(t, l).ask("/"); got != ok { // accepted by the call that waits already
		t.Fatal(got)
	}
	if got := dial(t, l).ask("/"); got != ok {
		t.Errorf("after the shortage: %s", got)
	}
	if failed.Load() != 3 {
		t.Errorf("%d failures, want 3", failed.Load())
	}
	if !idle.isClosed() {
		t.Error("no idle connection gave way")
	}
}

func TestClientIsNetworkOfIPv6(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::"} {
		if got := listener.Client(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", in, got, want)
		}
	}
}

func TestMaxByDescriptors(t *testing.T) {
	t.Parallel()
	if connections, files := listener.MaxByDescriptors(); connections < 1 || connections > files {
		t.Errorf("%d connections of %d files", connections, files)
	}
}

func TestSplitLeavesMostToClients(t *testing.T) {
	t.Parallel()
	for all, want := range map[int][2]int{1: {1, 1}, 32: {24, 8}, 128: {96, 32}, 512: {384, 128}, 20000: {19872, 128}} {
		if clients, operators := listener.Split(all, 128); [2]int{clients, operators} != want {
			t.Errorf("%d connections: %d for clients and %d for operators, want %v", all, clients, operators, want)
		}
	}
}
