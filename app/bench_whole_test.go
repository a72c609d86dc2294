package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// wholeSpan is how long each load of BenchmarkWholePath lasts.
const wholeSpan = 5 * time.Second

// BenchmarkWholePath loads the whole server with a file sink and events of new
// persons, in a closed loop, and reports the CPU of the server and its plugin process
// until everything is stored and delivered.
//
//	go test ./app -run '^$' -bench WholePath -benchtime 1x
func BenchmarkWholePath(b *testing.B) {
	for _, store := range []string{"sqlite", "postgres"} {
		for _, c := range []struct{ connections, events int }{{16, 1}, {64, 1}, {16, 100}} {
			b.Run(fmt.Sprintf("%s/connections=%d/events=%d", store, c.connections, c.events), func(b *testing.B) {
				url := ""
				if store == "postgres" {
					url = dbtest.PostgresURL(b)
				}
				for range b.N {
					b.Setenv("GUIDON_TEST_DATABASE", url)
					runWholePath(b, c.connections, c.events)
				}
			})
		}
	}
}

func runWholePath(b *testing.B, connections, events int) {
	b.Helper()
	server, a := startProcess(b, "sustained")
	w := &loadedServer{b: b, admin: a.AdminURL, pid: server.Pid}
	w.sendNewPersons(a, connections, events, time.Second) // warm up
	w.drain(0)
	pids := withChildren(server.Pid)
	saved := saveProfile(b, a.AdminURL, wholeSpan)
	defer func() { <-saved }()
	before, first, begin := usageOf(b, pids), w.sample(), time.Now()
	w.sendNewPersons(a, connections, events, wholeSpan)
	answered, sent := time.Since(begin), float64(w.sent.Load())
	w.drain(first.stored)
	after, stored := usageOf(b, pids), time.Since(begin)
	b.ReportMetric(float64((after.cpu-before.cpu).Microseconds())/sent, "cpu-µs/event")
	b.ReportMetric(float64(after.written-before.written)/sent, "bytes/event")
	b.ReportMetric(sent/answered.Seconds(), "answered/s")
	b.ReportMetric(sent/stored.Seconds(), "stored/s")
	b.ReportMetric(w.sample().memory/(1<<20), "MB")
}

// sendNewPersons sends requests of so many events, each of a new person, over the
// connections for the span.
func (w *loadedServer) sendNewPersons(a serverInfo, connections, events int, span time.Duration) {
	client := &fasthttp.Client{MaxConnsPerHost: connections}
	end, run := time.Now().Add(span), time.Now().UnixNano()
	var wg sync.WaitGroup
	for n := range connections {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), uint64(run)))
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI("http://" + a.Address + "/batch/")
			req.Header.SetMethod(http.MethodPost)
			var body []byte
			for i := 0; time.Now().Before(end); i++ {
				body = append(append(append(body[:0], `{"api_key":"`...), a.Project...), `","batch":[`...)
				for e := range events {
					id := "new-" + strconv.FormatInt(run, 36) + "-" + strconv.Itoa(n) + "-" + strconv.Itoa(i) + "-" + strconv.Itoa(e)
					body = append(eventOf(body, id, rnd), ',')
				}
				body = append(body[:len(body)-1], "]}"...)
				req.SetBodyRaw(body)
				if err := client.Do(req, res); err != nil || res.StatusCode() != http.StatusOK {
					w.b.Errorf("%v %d %s", err, res.StatusCode(), res.Body())
					return
				}
				w.sent.Add(int64(events))
			}
		})
	}
	wg.Wait()
}
