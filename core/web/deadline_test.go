package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/webtest"
)

// A kept connection lives for the idle timeout although the read timeout is
// shorter, and each request on it has the full read timeout. A slow machine may not
// read a whole request in a short time, so it gets longer ones.
func TestKeepAliveDeadlines(t *testing.T) {
	t.Parallel()
	var problem error
	for timeout := 200 * time.Millisecond; timeout < 10*time.Second; timeout *= 3 {
		if problem = keepAlive(t, timeout); problem == nil {
			return
		}
	}
	t.Error(problem)
}

func keepAlive(t *testing.T, timeout time.Duration) error {
	t.Helper()
	cfg := webtest.Config()
	cfg.ReadTimeout, cfg.IdleTimeout = timeout, time.Hour
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	ask := func(body string, want int) error {
		_, err := c.Write([]byte("POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n" + body))
		if err = errors.Join(err, c.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if _, err := bufio.NewReader(res.Body).Discard(int(res.ContentLength)); err != nil {
			return err
		}
		if res.StatusCode != want {
			return fmt.Errorf("%q within %s: status %d, want %d", body, timeout, res.StatusCode, want)
		}
		return nil
	}
	for range 3 {
		if err := ask("{}", http.StatusOK); err != nil {
			return err
		}
		time.Sleep(2 * timeout) // idle for longer than a request may be read
	}
	return ask("{", http.StatusRequestTimeout)
}
