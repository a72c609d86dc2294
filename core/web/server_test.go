package web_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func echo(g *web.Router) {
	g.Public("POST", "/e", func(c *fiber.Ctx) error {
		p, err := web.Body(c, g.Limits())
		if err != nil {
			return err
		}
		return web.JSON(c, len(p.JSON))
	})
}

// talk sends raw bytes and returns what comes back until the server closes.
func talk(t *testing.T, address string, parts ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	for _, p := range parts {
		if _, err := io.WriteString(c, p); err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("read: %v (after %q)", err, got)
	}
	return string(got)
}

func TestStartFailsOnUsedPort(t *testing.T) {
	t.Parallel()
	first := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	cfg := webtest.Config()
	cfg.Address = first.Address()
	second, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(context.Background()); err == nil || !strings.Contains(err.Error(), first.Address()) {
		t.Errorf("Start: %v, want an error that names %s", err, first.Address())
	}
	if err := second.Stop(context.Background()); err != nil {
		t.Errorf("Stop of a server that never started: %v", err)
	}
}

func TestStopWaitsForRequestsInFlight(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}), make(chan struct{})
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(func(g *web.Router) {
		g.Public("POST", "/slow", func(c *fiber.Ctx) error {
			close(entered)
			<-finish
			return web.Done(c)
		})
	}))
	silent, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answers := make(chan reply, 1)
	go func() { answers <- call(t, "POST", "http://"+s.Address()+"/slow", "{}") }()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	refused(t, s.Address())
	select {
	case err := <-stopped:
		t.Fatalf("Stop returned (%v) with a request in hand", err)
	default:
	}
	close(finish)
	if got := <-answers; got.status != 200 || got.body != `{"status":1}` {
		t.Errorf("the request in hand was answered %d %s", got.status, got.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// refused waits until address refuses connections.
func refused(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = c.Close()
	}
	t.Fatal("the server still takes connections")
}

func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	entered, ended := make(chan struct{}), make(chan struct{})
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(func(g *web.Router) {
		g.Public("POST", "/stuck", func(c *fiber.Ctx) error {
			close(entered)
			<-c.UserContext().Done()
			close(ended)
			return c.UserContext().Err()
		})
	}))
	go func() {
		resp, err := client.Post("http://"+s.Address()+"/stuck", "", strings.NewReader("{}"))
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err == nil {
		t.Error("Stop returned nil with a request that did not end")
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the context of the stuck request was not cancelled")
	}
}

func TestServerLeaksNoGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, err := web.New(webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Mount(routesFunc(echo))
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	own := &http.Client{Transport: &http.Transport{}}
	resp, err := own.Post("http://"+s.Address()+"/e", "", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	own.CloseIdleConnections()
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The HTTP library keeps one goroutine for its clock and sweeps its idle
	// workers every ten seconds.
	for deadline := time.Now().Add(time.Minute); ; {
		err := goleak.Find(before,
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestBodySizeLimit(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo), routesFunc(func(g *web.Router) {
		g.Manage("POST", "/api/x", "", managed("x"))
	}))
	base := "http://" + s.Address()
	const limit = 20 << 20
	body := `{"a":"` + strings.Repeat("x", limit-8) + `"}`
	if got := call(t, "POST", base+"/e", body); got.status != 200 || got.body != fmt.Sprint(limit) {
		t.Errorf("20 MiB: %d %s", got.status, got.body)
	}
	got := call(t, "POST", base+"/e", body+" ", "Origin: https://a.example")
	if got.status != 413 || got.body != `{"type":"client_error","code":"request_too_large","detail":"Request too large."}` {
		t.Errorf("20 MiB and a byte: %d %s", got.status, got.body)
	}
	if got.header.Get("Access-Control-Allow-Origin") != "https://a.example" || got.header.Get("X-Request-Id") == "" {
		t.Errorf("20 MiB and a byte: %v", got.header)
	}
	got = call(t, "POST", base+"/api/x", body+" ", bearer)
	if got.status != 413 || got.body != `{"type":"client_error","code":"request_too_large","detail":"Request too large.","attr":null}` {
		t.Errorf("20 MiB and a byte for management: %d %s", got.status, got.body)
	}
}

func TestChunkedBodySizeLimit(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.BodyBytes = 1000
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.Address()+"/e", io.MultiReader(strings.NewReader(strings.Repeat("x", 2000))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", resp.StatusCode)
	}
}

// A chunked body has no length: it is cut off once it is over the limit, however long
// the client goes on.
func TestEndlessChunkedBodyIsCutOff(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.BodyBytes = 100_000
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	answered := make(chan *http.Response, 1)
	go func() {
		res, _ := http.ReadResponse(bufio.NewReader(c), nil)
		answered <- res
	}()
	_, err = io.WriteString(c, "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := []byte("2710\r\n" + strings.Repeat("x", 10_000) + "\r\n")
	sent := 0
	for ; err == nil && sent < 256<<20; sent += len(chunk) {
		_, err = c.Write(chunk)
	}
	if err == nil {
		t.Errorf("the server received %d bytes of a body of at most %d", sent, cfg.BodyBytes)
	}
	if res := <-answered; res == nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("answer %v", res)
	}
}

func TestGzipBombIsRejected(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(echo))
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	got := call(t, "POST", base+"/e", packed.String(), "Content-Encoding: gzip")
	if got.status != 413 || got.body != `{"type":"client_error","code":"request_too_large","detail":"Request too large."}` {
		t.Errorf("64 MiB in %d bytes: %d %s", packed.Len(), got.status, got.body)
	}
}

func TestSlowClientsTimeOut(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.ReadTimeout, cfg.IdleTimeout = time.Second, time.Second // the first bytes must arrive before
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	for name, tc := range map[string]struct{ sent, want string }{
		"headers that never end":  {"POST /e HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 408"},
		"a body that never comes": {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{", "HTTP/1.1 408"},
		"nothing is ever said":    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := talk(t, s.Address(), tc.sent)
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("answer %q, want %q", got, tc.want)
			}
			if tc.sent != "" && strings.Contains(tc.sent, "\r\n\r\n") && !strings.Contains(got, `"code":"request_timeout"`) {
				t.Errorf("answer %q is not in the shape of an error", got)
			}
		})
	}
}

func TestInvalidHTTP(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.HeaderBytes = 2048
	s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	for name, tc := range map[string]struct{ sent, status, code string }{
		"nonsense":          {"hello there\r\n\r\n", "400", "parse_error"},
		"a broken length":   {"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "400", "parse_error"},
		"headers too large": {"POST /e HTTP/1.1\r\nHost: a\r\nCookie: " + strings.Repeat("x", 4000) + "\r\n\r\n", "431", "request_header_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := talk(t, s.Address(), tc.sent)
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.status) || !strings.Contains(got, `"code":"`+tc.code+`"`) {
				t.Errorf("answer %q", got)
			}
		})
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	var sent strings.Builder
	const n = 20
	for i := range n {
		body := `"` + strings.Repeat("x", i) + `"`
		last := ""
		if i == n-1 {
			last = "Connection: close\r\n"
		}
		fmt.Fprintf(&sent, "POST /e HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n[%s]", last, len(body)+2, body)
	}
	in := bufio.NewReader(strings.NewReader(talk(t, s.Address(), sent.String())))
	for i := range n {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != fmt.Sprint(i+4) {
			t.Errorf("answer %d = %s", i, body)
		}
	}
}

func TestHTTP10(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	got := talk(t, s.Address(), "POST /e HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
	if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(got, "\r\n\r\n2") || !strings.Contains(got, "Connection: close") {
		t.Errorf("answer %q", got)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(echo))
	got := talk(t, s.Address(), "POST /e HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", "{}")
	if !strings.HasPrefix(got, "HTTP/1.1 100") || !strings.HasSuffix(got, "\r\n\r\n2") {
		t.Errorf("answer %q", got)
	}
}

func TestPanicIsOneServerError(t *testing.T) {
	t.Parallel()
	log, lines := watched()
	s := webtest.Start(t, webtest.Config(), webtest.DefaultKeys(), log, nil, routesFunc(func(g *web.Router) {
		g.Public("POST", "/panic", func(*fiber.Ctx) error { panic("the secret is 42") })
		g.Manage("GET", "/api/panic", "", func(*web.Call) error {
			var none []int
			return fmt.Errorf("unreachable: %d", none[3])
		})
	}))
	base := "http://" + s.Address()
	for _, path := range []string{"/panic", "/api/panic"} {
		method := "POST"
		if path != "/panic" {
			method = "GET"
		}
		got := call(t, method, base+path, "", bearer, "X-Request-Id: find-me")
		if got.status != 500 || !strings.Contains(got.body, "A server error occurred.") || strings.Contains(got.body, "42") || got.header.Get("X-Request-Id") != "find-me" {
			t.Errorf("%s = %d %s %v", path, got.status, got.body, got.header)
		}
	}
	if got := call(t, "GET", base+"/_liveness", ""); got.status != 200 {
		t.Errorf("after the panics: %d", got.status)
	}
	found := lines.FilterMessage("request").FilterField(zap.String("request_id", "find-me")).All()
	if len(found) != 2 {
		t.Fatalf("%d lines, want one a panic", len(found))
	}
	for _, l := range found {
		if f := l.ContextMap(); !strings.Contains(fmt.Sprint(f["stack"]), "server_test.go") || !strings.Contains(fmt.Sprint(f["error"]), "panic") {
			t.Errorf("line %v has no stack or no error", f)
		}
	}
}
