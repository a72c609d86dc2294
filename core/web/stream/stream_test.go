package stream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/stream"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// routes serves a stream at /stream and passes it to the test.
type routes struct {
	opened chan *stream.Stream
	ended  chan struct{}
}

func (r *routes) Routes(g *web.Router) {
	g.Public(fiber.MethodGet, "/stream", func(c *fiber.Ctx) error {
		return stream.Open(c.Context(), func(s *stream.Stream) func() {
			r.opened <- s
			return func() { close(r.ended) }
		})
	})
}

// dial opens a stream and returns both ends of it.
func dial(t *testing.T) (*routes, *stream.Stream, net.Conn, *bufio.Reader) {
	t.Helper()
	r := &routes{opened: make(chan *stream.Stream, 1), ended: make(chan struct{})}
	u, err := url.Parse(webtest.Serve(t, webtest.DefaultKeys(), r))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprint(c, "GET /stream HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return r, <-r.opened, c, bufio.NewReader(c)
}

// head reads the head of the answer.
func head(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	out := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if out += line; line == "\r\n" {
			return out
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	r, s, _, in := dial(t)
	got := head(t, in)
	for _, want := range []string{"HTTP/1.1 200 OK\r\n", "Content-Type: text/event-stream\r\n", "Connection: close\r\n", "Access-Control-Allow-Origin: https://a.test\r\n", "X-Request-Id: "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if strings.Contains(got, "Content-Length") || strings.Contains(got, "Transfer-Encoding") {
		t.Errorf("the answer has an end: %q", got)
	}
	for _, event := range []string{"data: 1\n\n", "data: 2\n\n"} {
		if !s.Write([]byte(event)) {
			t.Fatal("the stream has ended")
		}
		buf := make([]byte, len(event))
		if _, err := io.ReadFull(in, buf); err != nil || string(buf) != event {
			t.Errorf("got %q, %v", buf, err)
		}
	}
	s.Close()
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	<-r.ended
	if s.Write([]byte("data: 3\n\n")) {
		t.Error("a closed stream takes writes")
	}
}

func TestStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	r, _, c, _ := dial(t)
	_ = c.Close()
	<-r.ended
}

// A client that sends data instead of reading loses its stream.
func TestStreamEndsWhenTheClientSends(t *testing.T) {
	t.Parallel()
	r, _, c, _ := dial(t)
	_, _ = c.Write(make([]byte, 1000))
	<-r.ended
}

// A client that does not read loses its stream, and writes do not wait for it.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	r, s, _, _ := dial(t)
	block := make([]byte, 1<<20)
	for s.Write(block) {
		time.Sleep(time.Millisecond)
	}
	<-r.ended
}

// What the buffers of the system do not take at once arrives in order.
func TestLateWritesArriveInOrder(t *testing.T) {
	t.Parallel()
	_, s, c, in := dial(t)
	head(t, in)
	const size = 24 << 20
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i >> 8)
	}
	s.Write(want)
	s.Write([]byte("end"))
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	got := make([]byte, size+3)
	if _, err := io.ReadFull(in, got); err != nil || string(got[size:]) != "end" || string(got[:size]) != string(want) {
		t.Errorf("the bytes differ: %v", err)
	}
}

func TestOpenWithoutConnection(t *testing.T) {
	t.Parallel()
	var ctx fasthttp.RequestCtx
	if err := stream.Open(&ctx, nil); !errors.Is(err, stream.ErrNoConn) {
		t.Errorf("got %v", err)
	}
}
