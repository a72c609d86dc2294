package app_test

import (
	"bufio"
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/plugins"
)

// BenchmarkSustained loads the whole server for a minute: batches of 100 events,
// fsynced before the answer, through persons into the event store and through a
// plugin process into a file. The load pauses while more than sustainedLag events
// are unprocessed, so that the rate is that of the output.
//
//	GUIDON_SUSTAIN=60s go test ./app -run '^$' -bench Sustained -benchtime 1x
func BenchmarkSustained(b *testing.B) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv("GUIDON_SUSTAIN"), "5s"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sqlite", func(b *testing.B) { runSustained(b, span, "") })
	b.Run("postgres", func(b *testing.B) { runSustained(b, span, dbtest.PostgresURL(b)) })
}

// sustainedLag limits the events that are sent and not yet stored and delivered.
const sustainedLag = 100_000

// serveSustained runs the whole server with one file sink.
func serveSustained(dir string) {
	config := filepath.Join(dir, "guidon.yaml")
	must(os.WriteFile(config, []byte("plugins:\n  instances:\n    - name: lines\n      kind: sink\n      use: file\n      config: {path: "+filepath.Join(dir, "events.ndjson")+"}\n"), 0o600))
	cfg, err := app.Load(config, nil)
	must(err)
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress, cfg.HTTP.AccessLog = filepath.Join(dir, "data"), "127.0.0.1:0", "127.0.0.1:0", web.LogServerErrors
	cfg.Database = db.Config{URL: os.Getenv("GUIDON_TEST_DATABASE")}
	cfg.HTTP.Pprof = true
	s, err := app.Start(context.Background(), cfg, app.Options{
		Version: "bench", Log: zap.NewNop(), BundledNames: plugins.Names(),
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} },
	})
	must(err)
	announceAndWait(serverInfo{Address: strings.TrimPrefix(s.URL, "http://"), AdminURL: s.AdminURL, Project: s.First.ProjectKey, Personal: s.First.PersonalKey})
	must(s.Stop())
}

func runSustained(b *testing.B, span time.Duration, database string) {
	b.Helper()
	for range b.N {
		b.Setenv("GUIDON_TEST_DATABASE", database)
		server, a := startProcess(b, "sustained")
		w := &loadedServer{b: b, admin: a.AdminURL, pid: server.Pid}
		w.sample()
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for n := range 4 {
			wg.Go(func() { w.sendEvents(a, uint64(n), stop) })
		}
		time.Sleep(2 * time.Second) // warm up
		first, used, begin := w.sample(), processCPU(b, server.Pid), time.Now()
		var early, late, lag float64 // memory in the first and the second half
		for time.Since(begin) < span {
			time.Sleep(250 * time.Millisecond)
			now := w.sample()
			lag = max(lag, float64(w.sent.Load())-min(now.stored, now.delivered))
			if time.Since(begin) < span/2 {
				early = max(early, now.memory)
			} else {
				late = max(late, now.memory)
			}
		}
		last, took := w.sample(), time.Since(begin).Seconds()
		b.ReportMetric((last.stored-first.stored)/took, "stored/s")
		b.ReportMetric((last.delivered-first.delivered)/took, "delivered/s")
		b.ReportMetric(float64((processCPU(b, server.Pid)-used).Microseconds())/(last.stored-first.stored), "cpu-µs/event")
		b.ReportMetric(early/(1<<20), "MB-first-half")
		b.ReportMetric(late/(1<<20), "MB-second-half")
		b.ReportMetric(lag, "most-behind")
		close(stop)
		wg.Wait()
	}
}

// loadedServer is a server under sustained load.
type loadedServer struct {
	b     *testing.B
	admin string // URL of the admin address
	pid   int
	sent  atomic.Int64
	done  atomic.Int64 // stored and delivered, at the last sample
}

// sample holds the metrics of the server at one time.
type sample struct{ stored, delivered, memory float64 }

func (w *loadedServer) sample() (out sample) {
	res, err := http.Get(w.admin + "/metrics")
	if err != nil {
		w.b.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch {
		case name == "guidon_ingestion_events_processed_total":
			out.stored, _ = strconv.ParseFloat(value, 64)
		case strings.HasPrefix(name, "guidon_ingestion_deliver_events_total"):
			out.delivered, _ = strconv.ParseFloat(value, 64)
		case name == "process_resident_memory_bytes":
			out.memory, _ = strconv.ParseFloat(value, 64)
		}
	}
	w.done.Store(int64(min(out.stored, out.delivered)))
	return out
}

// sendEvents sends batches of 100 current events of 10,000 persons until stop is
// closed.
func (w *loadedServer) sendEvents(a serverInfo, seed uint64, stop <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	client := &fasthttp.Client{}
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	req.SetRequestURI("http://" + a.Address + "/batch/")
	req.Header.SetMethod(http.MethodPost)
	var body []byte
	for {
		select {
		case <-stop:
			return
		default:
		}
		if w.sent.Load()-w.done.Load() > sustainedLag {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		body = append(append(append(body[:0], `{"api_key":"`...), a.Project...), `","batch":[`...)
		for range 100 {
			body = append(sustainedEvent(body, rnd), ',')
		}
		body = append(body[:len(body)-1], "]}"...)
		req.SetBodyRaw(body)
		if err := client.Do(req, res); err != nil || res.StatusCode() != http.StatusOK {
			w.b.Errorf("%v %d %s", err, res.StatusCode(), res.Body())
			return
		}
		w.sent.Add(100)
	}
}

// sustainedEvent appends an event of about 550 bytes of one of 10,000 persons.
func sustainedEvent(to []byte, rnd *rand.Rand) []byte {
	return eventOf(to, "user-"+strconv.Itoa(rnd.IntN(10_000)), rnd)
}

// eventOf appends an event of about 550 bytes of a person.
func eventOf(to []byte, id string, rnd *rand.Rand) []byte {
	to = append(append(to, `{"event":"paid","distinct_id":"`...), id...)
	to = append(to, `","properties":{"$lib":"bench","$current_url":"https://shop.example.com/products/`...)
	to = strconv.AppendInt(to, int64(rnd.IntN(1000)), 10)
	to = append(to, `?x=1","price":`...)
	to = strconv.AppendInt(to, int64(rnd.IntN(500)), 10)
	to = append(to, `,"plan":"pro","items":[1,2,3],"referrer":"https://search.example.com/","browser":"Firefox","os":"Linux","width":1920,"height":1080,"locale":"nl-NL","campaign":"winter","ab":"b","note":"some text that is a little longer than the rest of it all","$set":{"plan":"pro"}},"timestamp":"`...)
	to = time.Now().UTC().AppendFormat(to, time.RFC3339Nano)
	return append(to, `"}`...)
}
