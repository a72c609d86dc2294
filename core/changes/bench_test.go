package changes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/changes"
	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/listener"
)

// serveMany serves streams without bounds that a single client would reach.
func serveMany(tb testing.TB, l changes.Log, streams int) (address string) {
	tb.Helper()
	return startMany(tb, l, streams).Address()
}

func startMany(tb testing.TB, l changes.Log, streams int) *web.Server {
	tb.Helper()
	cfg := changes.DefaultConfig()
	cfg.ClientStreams, cfg.ProjectStreams = streams, streams
	hub := newHub(tb, cfg, l, changes.Memory{})
	wcfg := web.DefaultConfig()
	wcfg.Address, wcfg.AdminAddress, wcfg.AccessLog = "127.0.0.1:0", "", web.LogServerErrors
	s, err := web.New(wcfg, keys(), zap.NewNop(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	s.Mount(changes.NewHTTP(hub))
	if err := s.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// rawStreams opens n streams with as little memory on the side of the client as
// possible.
func rawStreams(tb testing.TB, address string, n int) []net.Conn {
	tb.Helper()
	out := make([]net.Conn, 0, n)
	buf := make([]byte, 4096)
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, c)
		_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", publicURL); err != nil {
			tb.Fatal(err)
		}
		got := ""
		for !strings.Contains(got, `{"revision":`) {
			k, err := c.Read(buf)
			if err != nil {
				tb.Fatalf("%v after %q", err, got)
			}
			got += string(buf[:k])
		}
	}
	tb.Cleanup(func() {
		for _, c := range out {
			_ = c.Close()
		}
	})
	return out
}

// inUse returns the bytes of heap and stacks.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// rss returns the resident memory of the process in MiB.
func rss(b *testing.B) float64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0 // not on this system
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		b.Fatal(err)
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// awaitEvent returns the time until every client has got the event of a revision.
func awaitEvent(tb testing.TB, conns []net.Conn, revision int) time.Duration {
	tb.Helper()
	start, want := time.Now(), fmt.Sprintf(`"revision":%d`, revision)
	for _, c := range conns {
		in := bufio.NewReaderSize(c, 512)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				tb.Fatal(err)
			}
			if strings.Contains(line, want) {
				break
			}
		}
	}
	return time.Since(start)
}

// BenchmarkIdleStreams opens 10,000 streams, or as many as the process may open
// files for, and reports the memory of each, the ends of the clients included, and
// the time from a change to the last client.
func BenchmarkIdleStreams(b *testing.B) {
	n := 10_000
	if _, files := listener.MaxByDescriptors(); files < 2*n+1000 {
		n = (files - 1000) / 2
	}
	l := &memoryLog{}
	address := serveMany(b, l, n+10)
	rawStreams(b, address, 10) // what is allocated once
	before, resident := inUse(), rss(b)
	conns := rawStreams(b, address, n)
	perStream := (inUse() - before) / float64(n)
	revision := 0
	var last time.Duration
	for b.Loop() {
		revision++
		l.add(changelog.Flag, "nav")
		last = max(last, awaitEvent(b, conns, revision))
	}
	b.ReportMetric(rss(b)-resident, "MiB-RSS")
	b.ReportMetric(float64(n), "streams")
	b.ReportMetric(perStream, "B/stream")
	b.ReportMetric(perStream*float64(n)/(1<<20), "MiB")
	b.ReportMetric(float64(last.Milliseconds()), "max-ms-to-last")
}

// An idle stream takes less than 20 KiB, the end of the client included: 10,000
// take less than 200 MiB.
func TestIdleStreamsAreSmall(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const n = 400
	l := &memoryLog{}
	address := serveMany(t, l, n+10)
	rawStreams(t, address, 10)
	before := inUse()
	conns := rawStreams(t, address, n)
	if perStream := (inUse() - before) / n; perStream > 20<<10 {
		t.Errorf("a stream takes %.0f bytes", perStream)
	}
	l.add(changelog.Flag, "nav")
	awaitEvent(t, conns, 1)
}

// A stop ends open streams at once and does not wait for them.
func TestServerStopEndsStreams(t *testing.T) {
	t.Parallel()
	s := startMany(t, &memoryLog{}, 100)
	conns := rawStreams(t, s.Address(), 100)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := time.Now()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the stop took %s", took)
	}
	for _, c := range conns {
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("a stream did not end: %v", err)
		}
	}
}
