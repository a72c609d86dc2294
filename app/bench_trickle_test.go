package app_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// trickleSpan is how long each rate is measured.
const trickleSpan = 10 * time.Second

// BenchmarkTrickle sends single events at a fixed rate to the whole server, with a
// file sink, and reports what an event costs until it is stored and delivered: CPU
// of the server and its plugin process, and bytes written to disk.
//
//	go test ./app -run '^$' -bench Trickle -benchtime 1x
//
// GUIDON_BENCH_PROFILE names a directory for a CPU profile of each server.
func BenchmarkTrickle(b *testing.B) {
	for _, store := range []string{"sqlite", "postgres"} {
		for _, rate := range []int{0, 10, 200, 2000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", store, rate), func(b *testing.B) {
				url := ""
				if store == "postgres" {
					url = dbtest.PostgresURL(b)
				}
				for range b.N {
					b.Setenv("GUIDON_TEST_DATABASE", url)
					runTrickle(b, rate)
				}
			})
		}
	}
}

// BenchmarkTrickleFloor is the part of BenchmarkTrickle that any server pays: Fiber
// with a fixed answer, and Fiber that writes each request to a file and syncs it.
func BenchmarkTrickleFloor(b *testing.B) {
	for _, what := range []string{"floor", "bare"} {
		for _, rate := range []int{10, 200, 2000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", what, rate), func(b *testing.B) {
				for range b.N {
					server, a := startProcess(b, what)
					w := &loadedServer{b: b}
					w.sendSingles(a, max(rate, 10), time.Second)
					before, begin := usageOf(b, []int{server.Pid}), time.Now()
					took := w.sendSingles(a, rate, trickleSpan)
					reportUsage(b, before, usageOf(b, []int{server.Pid}), took, time.Since(begin))
				}
			})
		}
	}
}

// reportUsage reports what each of the requests cost.
func reportUsage(b *testing.B, before, after usage, took []time.Duration, sending time.Duration) {
	b.Helper()
	events := float64(len(took))
	b.ReportMetric(events/sending.Seconds(), "sent/s")
	b.ReportMetric(float64((after.cpu-before.cpu).Microseconds())/events, "cpu-µs/event")
	b.ReportMetric(float64(after.written-before.written)/events, "bytes/event")
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
}

// usage is what a server and its plugin processes have used.
type usage struct {
	cpu     time.Duration
	written int64 // bytes
}

func usageOf(b *testing.B, pids []int) (u usage) {
	b.Helper()
	for _, pid := range pids {
		u.cpu += processCPU(b, pid)
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
				bytes, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
				u.written += bytes
			}
		}
	}
	return u
}

// withChildren returns the pid and those of its child processes.
func withChildren(pid int) []int {
	pids := []int{pid}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

func runTrickle(b *testing.B, rate int) {
	b.Helper()
	server, a := startProcess(b, "sustained")
	w := &loadedServer{b: b, admin: a.AdminURL, pid: server.Pid}
	w.sendSingles(a, max(rate, 10), 2*time.Second) // warm up
	w.drain(0)
	pids := withChildren(server.Pid)
	saved := saveProfile(b, a.AdminURL, trickleSpan)
	defer func() { <-saved }()
	before, first := usageOf(b, pids), w.sample()
	if rate == 0 {
		time.Sleep(trickleSpan)
		u := usageOf(b, pids)
		b.ReportMetric(float64((u.cpu-before.cpu).Microseconds())/trickleSpan.Seconds()/1000, "cpu-ms/s")
		b.ReportMetric(float64(u.written-before.written)/trickleSpan.Seconds(), "bytes/s")
		return
	}
	begin := time.Now()
	took := w.sendSingles(a, rate, trickleSpan)
	sending := time.Since(begin)
	w.drain(first.stored)
	reportUsage(b, before, usageOf(b, pids), took, sending)
	b.ReportMetric(w.sample().memory/(1<<20), "MB")
}

// saveProfile starts to save a CPU profile of a server in the directory that
// GUIDON_BENCH_PROFILE names. The channel is closed at the end.
func saveProfile(b *testing.B, admin string, span time.Duration) <-chan struct{} {
	saved := make(chan struct{})
	dir := os.Getenv("GUIDON_BENCH_PROFILE")
	if dir == "" {
		close(saved)
		return saved
	}
	go func() {
		defer close(saved)
		res, err := http.Get(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", admin, int(span.Seconds())))
		if err != nil {
			b.Error(err)
			return
		}
		defer res.Body.Close()
		f, err := os.Create(filepath.Join(dir, strings.ReplaceAll(b.Name(), "/", "-")+".pprof"))
		if err != nil {
			b.Error(err)
			return
		}
		_, err = io.Copy(f, res.Body)
		if err = errors.Join(err, f.Close()); err != nil {
			b.Error(err)
		}
	}()
	return saved
}

// drain waits until what was sent is stored and delivered.
func (w *loadedServer) drain(stored float64) {
	w.b.Helper()
	target := stored + float64(w.sent.Swap(0))
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if s := w.sample(); s.stored >= target && s.delivered >= target {
			return
		}
		if time.Now().After(end) {
			w.b.Fatal("the events are not stored and delivered")
		}
	}
}

// sendSingles sends single events at the rate for the span, over up to 64
// connections, and returns the time that each took from its schedule to its answer.
func (w *loadedServer) sendSingles(a serverInfo, rate int, span time.Duration) []time.Duration {
	client := &fasthttp.Client{MaxConnsPerHost: 64}
	due := make(chan time.Time, rate)
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for n := range min(64, max(4, rate/20)) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), uint64(rate)))
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI("http://" + a.Address + "/capture/")
			req.Header.SetMethod(http.MethodPost)
			var body []byte
			for at := range due {
				event := sustainedEvent(nil, rnd)
				body = append(append(append(append(body[:0], `{"api_key":"`...), a.Project...), `",`...), event[1:]...)
				req.SetBodyRaw(body)
				if err := client.Do(req, res); err != nil || res.StatusCode() != http.StatusOK {
					w.b.Errorf("%v %d %s", err, res.StatusCode(), res.Body())
					continue
				}
				w.sent.Add(1)
				mu.Lock()
				all = append(all, time.Since(at))
				mu.Unlock()
			}
		})
	}
	begin := time.Now()
	for n := range int(float64(rate) * span.Seconds()) {
		at := begin.Add(time.Duration(n) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	wg.Wait()
	return all
}
