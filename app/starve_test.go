package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// starveSize is how much data and time TestSearchesDoNotStarveDecide uses.
type starveSize struct {
	persons, events int
	places          int           // of scans; 0 is the default
	span            time.Duration // of each measurement
	measured        bool          // latencies are compared, too
}

func starveSizeOf(t *testing.T) starveSize {
	t.Helper()
	number := func(name string, small int) int {
		text := os.Getenv(name)
		if text == "" {
			return small
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	z := starveSize{persons: number("GUIDON_STARVE_PERSONS", 600), events: number("GUIDON_STARVE_EVENTS", 1200), span: time.Second}
	if os.Getenv("GUIDON_STARVE_PERSONS") != "" {
		z.measured, z.places = true, number("GUIDON_STARVE_PLACES", 0)
		z.span = time.Duration(number("GUIDON_STARVE_SECONDS", 20)) * time.Second
	}
	return z
}

// TestSearchesDoNotStarveDecide sends 50 decisions and 50 events per second, first
// alone and then beside 12 searches for persons in a loop and a count of an action
// by a regular expression. No flag is left out, no event is refused, and the
// searches wait for places.
//
//	GUIDON_STARVE_PERSONS=50000 GUIDON_STARVE_EVENTS=3000000 go test ./app -run SearchesDoNotStarve -v -timeout 1h
//
// measures with that much data, and compares the 99th percentiles: they are at most
// three times those without searches. GUIDON_STARVE_SECONDS is the length of each
// measurement, GUIDON_STARVE_PLACES the number of places of scans.
func TestSearchesDoNotStarveDecide(t *testing.T) {
	size := starveSizeOf(t)
	if !size.measured {
		t.Parallel()
	}
	dbtest.RunURL(t, func(t *testing.T, url string) {
		s := serve(t, func(c *app.Config) {
			c.Database.URL = url
			if size.measured {
				c.Flags.LookupTimeout = 300 * time.Millisecond
				c.Database.Scans.Places = size.places
				return
			}
			c.Database.Scans.Places, c.Database.Scans.Queue, c.Database.Scans.MaxWait = 1, 100, time.Minute
		})
		l := &starveLoad{server: s, size: size}
		l.fill(t)
		l.warm(t)
		idle := l.measure(t, "idle")
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		l.search(ctx, &running)
		s.until(t, "searches wait for places", func() bool {
			_, waiting := s.DB.Scans()
			return waiting > 0
		})
		busy := l.measure(t, "beside searches")
		stop()
		running.Wait()
		if l.searches.Load() == 0 && size.measured {
			t.Error("no search was answered")
		}
		t.Logf("%d searches answered, %d refused", l.searches.Load(), l.refused.Load())
		if size.measured {
			compareTails(t, "decide", idle.decide, busy.decide)
			compareTails(t, "capture", idle.capture, busy.capture)
		}
	})
}

func compareTails(t *testing.T, what string, idle, busy []time.Duration) {
	t.Helper()
	if i, b := percentile(idle, 99), percentile(busy, 99); b > 3*i {
		t.Errorf("p99 of %s: %s beside searches, %s without", what, b, i)
	}
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// starveLoad is the load of TestSearchesDoNotStarveDecide.
type starveLoad struct {
	server            *server
	size              starveSize
	searches, refused atomic.Int64
}

// latencies are ascending, from the time at which a request was due.
type latencies struct{ decide, capture []time.Duration }

func (l *starveLoad) post(path, body string) (int, string) {
	req, err := http.NewRequest(http.MethodPost, l.server.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	return l.do(req)
}

func (l *starveLoad) do(req *http.Request) (int, string) {
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

// fill stores persons and events, flags that read stored properties, and an action
// whose count reads every event.
func (l *starveLoad) fill(t *testing.T) {
	t.Helper()
	s := l.server
	for i := range 5 {
		l.server.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", fmt.Sprintf(
			`{"key":"flag-%d","filters":{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":["pro"]}],"rollout_percentage":100}]}}`, i))
	}
	begin := time.Now().Add(-80 * 24 * time.Hour)
	const batch = 500
	for from := 0; from < l.size.events; from += batch {
		items := make([]string, 0, batch)
		for i := from; i < min(from+batch, l.size.events); i++ {
			set := ""
			if i < l.size.persons {
				set = fmt.Sprintf(`,"$set":{"email":"user%d@example.test","plan":"pro","team":"team %d","company":"company %d"}`, i, i%40, i%900)
			}
			items = append(items, fmt.Sprintf(`{"event":"page view","distinct_id":"user-%d","timestamp":%q,"properties":{"$current_url":"https://app.example.test/page/%d","browser":"Firefox"%s}}`,
				i%l.size.persons, begin.Add(time.Duration(i)*2*time.Second).Format(time.RFC3339), i%5000, set))
		}
		for {
			status, answer := l.post("/batch/", `{"api_key":"`+s.ProjectKey+`","batch":[`+strings.Join(items, ",")+`]}`)
			if status == http.StatusOK {
				break
			}
			if status != http.StatusServiceUnavailable {
				t.Fatalf("batch: %d %s", status, answer)
			}
			time.Sleep(time.Second)
		}
	}
	for deadline := time.Now().Add(time.Minute + time.Duration(l.size.events)*time.Millisecond); ; time.Sleep(200 * time.Millisecond) {
		var n int
		if err := s.DB.Read(t.Context()).NewSelect().TableExpr("events").ColumnExpr("count(*)").Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		if n >= l.size.events {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events are stored", n, l.size.events)
		}
	}
}

// warm waits until decisions know the flags.
func (l *starveLoad) warm(t *testing.T) {
	t.Helper()
	l.server.until(t, "decide knows the flags", func() bool {
		_, answer := l.decide(0)
		return strings.Count(answer, ":true") >= 5
	})
}

func (l *starveLoad) decide(i int) (int, string) {
	return l.post("/decide?v=3", fmt.Sprintf(`{"api_key":%q,"distinct_id":"user-%d"}`, l.server.ProjectKey, i%l.size.persons))
}

// measure sends 50 decisions and 50 events per second, each when it is due, and
// checks every answer.
func (l *starveLoad) measure(t *testing.T, what string) latencies {
	t.Helper()
	const every = 20 * time.Millisecond
	n := int(l.size.span / every)
	out := latencies{make([]time.Duration, n), make([]time.Duration, n)}
	var leftOut, failed atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * every)
		time.Sleep(time.Until(due))
		all.Go(func() {
			status, answer := l.decide(i * 7)
			out.decide[i] = time.Since(due)
			switch {
			case status != http.StatusOK:
				failed.Add(1)
			case !strings.Contains(answer, `"errorsWhileComputingFlags":false`) || strings.Count(answer, `"flag-`) < 5:
				leftOut.Add(1)
			}
		})
		all.Go(func() {
			status, _ := l.post("/capture/", fmt.Sprintf(`{"api_key":%q,"event":"captured","distinct_id":"user-%d"}`, l.server.ProjectKey, i%l.size.persons))
			if out.capture[i] = time.Since(due); status != http.StatusOK {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if leftOut.Load()+failed.Load() > 0 {
		t.Errorf("%s: of %d decisions %d left flags out, %d requests failed", what, n, leftOut.Load(), failed.Load())
	}
	slices.Sort(out.decide)
	slices.Sort(out.capture)
	for name, took := range map[string][]time.Duration{"decide": out.decide, "capture": out.capture} {
		t.Logf("%s: %s p50 %s p90 %s p99 %s", what, name, percentile(took, 50), percentile(took, 90), percentile(took, 99))
	}
	return out
}

// search runs 12 searches in a loop until ctx ends, and counts an action.
func (l *starveLoad) search(ctx context.Context, running *sync.WaitGroup) {
	get := func(path string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server.URL+path, nil)
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+l.server.PersonalKey)
		switch status, _ := l.do(req); {
		case status == http.StatusOK:
			l.searches.Add(1)
		case ctx.Err() == nil:
			l.refused.Add(1)
		}
	}
	for i := range 12 {
		path := fmt.Sprintf("/api/projects/1/persons/?limit=10&search=user%d@", i)
		if i%2 == 0 {
			path = fmt.Sprintf(`/api/projects/1/persons/?limit=10&properties=[{"key":"team","type":"person","operator":"regex","value":"m%%20%d$"}]`, i)
		}
		running.Go(func() {
			for ctx.Err() == nil {
				get(path)
			}
		})
	}
	running.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL+"/api/projects/1/actions/",
			strings.NewReader(`{"name":"regex","steps":[{"url":"page/.*[1-3]5$","url_matching":"regex"}]}`))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+l.server.PersonalKey)
		if _, answer := l.do(req); strings.Contains(answer, `"id"`) {
			get("/api/projects/1/actions/1/count/")
		}
	})
}
