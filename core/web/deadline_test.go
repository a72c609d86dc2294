package web_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/webtest"
)

// A kept connection lives for the idle timeout although the read timeout is
// shorter, and each request on it has the full read timeout.
func TestKeepAliveDeadlines(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.ReadTimeout, cfg.IdleTimeout = 200*time.Millisecond, time.Hour
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	ask := func(request string) *http.Response {
		t.Helper()
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(res.Body).Discard(int(res.ContentLength)); err != nil {
			t.Fatal(err)
		}
		return res
	}
	const head = "POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
	for range 3 {
		if res := ask(head + "{}"); res.StatusCode != http.StatusOK {
			t.Fatalf("status %d", res.StatusCode)
		}
		time.Sleep(2 * cfg.ReadTimeout) // idle for longer than a request may be read
	}
	if res := ask(strings.TrimSuffix(head, "\r\n") + "\r\n{"); res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("half a body on a kept connection: status %d, want 408", res.StatusCode)
	}
}
