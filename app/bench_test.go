package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/web"
)

// The benchmarks of whole requests. Each server is a process of its own, another
// run of this test binary, so that its CPU time is separate from that of the load.
// "floor" is Fiber with a fixed answer; compare with it inside one run only,
// because the machine is shared.
//
//	go test ./app -run '^$' -bench Requests -benchtime 20000x

// serveEnv names the server that the test binary runs instead of tests.
const serveEnv = "GUIDON_TEST_SERVE"

// serverInfo is printed by a server process when it is ready.
type serverInfo struct{ Address, AdminURL, Project, Personal string }

func announceAndWait(a serverInfo) {
	_ = json.NewEncoder(os.Stdout).Encode(a)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes the pipe
}

// serveFloor answers every request with a fixed body.
func serveFixedAnswer() {
	f := fiber.New(fiber.Config{DisableStartupMessage: true, BodyLimit: 20 << 20})
	f.Post("/*", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.SendString(`{"status":1}`)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() { _ = f.Listener(l) }()
	announceAndWait(serverInfo{Address: l.Addr().String()})
}

// serveGroupCommit is the minimum of a server that answers after fsync: Fiber, and
// one goroutine that writes all waiting requests to a plain file and syncs it.
func serveGroupCommit(dir string) {
	file, err := os.Create(filepath.Join(dir, "bare"))
	must(err)
	type waiting struct {
		data []byte
		done chan error
	}
	line := make(chan *waiting, 4096)
	go func() {
		var buf []byte
		var group []*waiting
		for first := range line {
			group, buf = append(group[:0], first), append(buf[:0], first.data...)
			for len(line) > 0 {
				next := <-line
				group, buf = append(group, next), append(buf, next.data...)
			}
			_, err := file.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(file.Fd()))
			}
			for _, w := range group {
				w.done <- err
			}
		}
	}()
	pool := sync.Pool{New: func() any { return &waiting{done: make(chan error, 1)} }}
	f := fiber.New(fiber.Config{DisableStartupMessage: true, BodyLimit: 20 << 20})
	f.Post("/*", func(c *fiber.Ctx) error {
		w := pool.Get().(*waiting)
		defer pool.Put(w)
		w.data = c.Body()
		line <- w
		if err := <-w.done; err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.SendString(`{"status":1}`)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() { _ = f.Listener(l) }()
	announceAndWait(serverInfo{Address: l.Addr().String()})
}

// serveCapture runs the capture path alone: server, keys and journal, without a
// reader of the journal.
func serveCapture(dir string) {
	ctx, log := context.Background(), zap.NewNop()
	d, err := db.Open(ctx, db.Config{}, dir)
	must(err)
	must(d.Migrate(ctx))
	keys, err := auth.New(auth.DefaultConfig(), d, log, nil)
	must(err)
	first, err := keys.Bootstrap(ctx)
	must(err)
	must(keys.Start(ctx))
	j, err := journal.Open(journal.DefaultConfig(), dir, log, nil)
	must(err)
	cfg := web.DefaultConfig()
	cfg.Address, cfg.AdminAddress, cfg.AccessLog = "127.0.0.1:0", "", web.LogServerErrors
	s, err := web.New(cfg, keys, log, nil)
	must(err)
	s.Mount(capture.NewHTTP(j, capture.NewMetrics(nil), log))
	must(s.Start(ctx))
	announceAndWait(serverInfo{Address: s.Address(), Project: first.ProjectKey})
}

// serveAll runs the whole server without plugins and without access log lines for
// successful requests.
func serveAll(dir string) {
	cfg := app.DefaultConfig()
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress, cfg.HTTP.AccessLog = dir, "127.0.0.1:0", "127.0.0.1:0", web.LogServerErrors
	s, err := app.Start(context.Background(), cfg, app.Options{Version: "bench", Log: zap.NewNop()})
	must(err)
	announceAndWait(serverInfo{Address: strings.TrimPrefix(s.URL, "http://"), Project: s.First.ProjectKey, Personal: s.First.PersonalKey})
}

func BenchmarkRequests(b *testing.B) {
	const event = `"distinct_id":"user-%d","properties":{"$lib":"bench","$current_url":"https://shop.example.com/products/42?x=1","price":12.5,"plan":"pro","items":[1,2,3],"referrer":"https://search.example.com/","browser":"Firefox","os":"Linux","width":1920,"height":1080,"locale":"nl-NL","campaign":"winter","ab":"b","note":"some text that is a little longer than the rest of it all"},"timestamp":"2026-01-02T03:04:05.678Z"`
	capture := func(a serverInfo) []byte {
		return fmt.Appendf(nil, `{"api_key":%q,"event":"paid",`+event+`}`, a.Project, 7)
	}
	batch := func(a serverInfo) []byte {
		items := make([]string, 100)
		for i := range items {
			items[i] = fmt.Sprintf(`{"event":"paid",`+event+`}`, i%10)
		}
		return fmt.Appendf(nil, `{"api_key":%q,"batch":[%s]}`, a.Project, strings.Join(items, ","))
	}
	decide := func(a serverInfo) []byte {
		return fmt.Appendf(nil, `{"api_key":%q,"distinct_id":"user-7","person_properties":{"plan":"pro","age":42,"email":"ada@example.com"}}`, a.Project)
	}
	b.Run("floor", func(b *testing.B) { load(b, "floor", "/", capture, 1) })
	b.Run("bare", func(b *testing.B) { load(b, "bare", "/", capture, 1) })
	b.Run("capture/accept", func(b *testing.B) { load(b, "accept", "/capture/", capture, 1) })
	b.Run("bare-again", func(b *testing.B) { load(b, "bare", "/", capture, 1) })
	b.Run("batch100/accept", func(b *testing.B) { load(b, "accept", "/batch/", batch, 100) })
	b.Run("decide50", func(b *testing.B) { load(b, "whole", "/decide?v=3", decide, 1) })
	b.Run("floor-again", func(b *testing.B) { load(b, "floor", "/", capture, 1) })
}

// load sends b.N requests over 64 connections to a new server and reports the CPU
// time of the server and the rate.
func load(b *testing.B, what, path string, body func(serverInfo) []byte, events int) {
	b.Helper()
	server, a := startProcess(b, what)
	if what == "whole" {
		createFiftyFlags(b, a)
	}
	payload, uri := body(a), "http://"+a.Address+path
	client := &fasthttp.Client{MaxConnsPerHost: 64}
	send(b, client, uri, payload, 2000)
	before, begin := processCPU(b, server.Pid), time.Now()
	b.ResetTimer()
	slowest := send(b, client, uri, payload, b.N)
	took := time.Since(begin)
	b.StopTimer()
	used := processCPU(b, server.Pid) - before
	n := float64(b.N)
	b.ReportMetric(float64(used.Nanoseconds())/n/1e3, "cpu-µs/req")
	b.ReportMetric(n/took.Seconds(), "req/s")
	b.ReportMetric(float64(slowest.Microseconds())/1e3, "p99-ms")
	if events > 1 {
		b.ReportMetric(float64(used.Nanoseconds())/n/1e3/float64(events), "cpu-µs/event")
		b.ReportMetric(n*float64(events)/took.Seconds(), "events/s")
	}
}

func send(b *testing.B, client *fasthttp.Client, uri string, payload []byte, n int) (p99 time.Duration) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	times := make([][]time.Duration, 64)
	var wg sync.WaitGroup
	for w := range times {
		wg.Go(func() {
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI(uri)
			req.Header.SetMethod(http.MethodPost)
			req.Header.SetContentType("application/json")
			req.SetBodyRaw(payload)
			for left.Add(-1) >= 0 {
				begin := time.Now()
				if err := client.Do(req, res); err != nil || res.StatusCode() != http.StatusOK {
					b.Errorf("%v %d %s", err, res.StatusCode(), res.Body())
					return
				}
				times[w] = append(times[w], time.Since(begin))
			}
		})
	}
	wg.Wait()
	return quantile(times, 0.99)
}

func quantile(times [][]time.Duration, q float64) time.Duration {
	var all []time.Duration
	for _, t := range times {
		all = append(all, t...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func startProcess(b *testing.B, what string) (*os.Process, serverInfo) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+what, "GUIDON_TEST_DIR="+b.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		b.Fatal(err)
	}
	var a serverInfo
	if err := json.Unmarshal(line, &a); err != nil {
		b.Fatal(err)
	}
	return cmd.Process, a
}

// createFiftyFlags creates fifty flags, half of them with conditions on properties.
func createFiftyFlags(b *testing.B, a serverInfo) {
	b.Helper()
	for i := range 50 {
		filters := fmt.Sprintf(`{"groups":[{"properties":[],"rollout_percentage":%d}]}`, i*2)
		if i%2 == 0 {
			filters = fmt.Sprintf(`{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro","team"]}],"rollout_percentage":%d},{"properties":[{"key":"email","type":"person","operator":"icontains","value":"@example"}],"rollout_percentage":10}]}`, i*2)
		}
		req, err := http.NewRequest(http.MethodPost, "http://"+a.Address+"/api/projects/1/feature_flags/",
			bytes.NewReader(fmt.Appendf(nil, `{"key":"flag-%d","filters":%s}`, i, filters)))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Personal)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			b.Fatalf("create flag: %d", res.StatusCode)
		}
	}
}

// processCPU returns the CPU time of a process, to the nanosecond.
func processCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	if runtime.GOOS != "linux" {
		b.Fatal("CPU time is read from /proc")
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("no schedstat for %d: %v", pid, err)
	}
	var total int64
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		n, _ := strconv.ParseInt(strings.Fields(string(raw))[0], 10, 64)
		total += n
	}
	return time.Duration(total)
}
