package ofrep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/flags/ofrep"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// half is a project of n flags, every second one with a property condition: the
// project of the benchmarks of /decide.
func half(n int) *memorySource {
	s := &memorySource{}
	for i := range n {
		filters := `{"groups":[{"properties":[],"rollout_percentage":50}]}`
		if i%2 == 0 {
			filters = fmt.Sprintf(`{"groups":[{"properties":[{"key":"p%d","type":"person","operator":"exact","value":["v%d"]}],"rollout_percentage":60}]}`, i%10, i%10)
		}
		s.stored.Flags = append(s.stored.Flags, flagstest.Define(int64(i+1), fmt.Sprintf("flag-%d", i), filters))
	}
	return s
}

// request is a request that a benchmark repeats, without its network.
type request struct {
	handle fasthttp.RequestHandler
	ctx    fasthttp.RequestCtx
	body   string
}

func newRequest(b *testing.B, handle fasthttp.RequestHandler, uri, body string) *request {
	b.Helper()
	r := &request{handle: handle, body: body}
	r.ctx.Request.Header.SetMethod("POST")
	r.ctx.Request.SetRequestURI(uri)
	r.ctx.Request.Header.SetContentType("application/json")
	r.ctx.Request.Header.Set("X-API-Key", "phc_test")
	r.run()
	if r.ctx.Response.StatusCode() != 200 || !strings.Contains(string(r.ctx.Response.Body()), `flag-49`) {
		b.Fatalf("%d %s", r.ctx.Response.StatusCode(), r.ctx.Response.Body())
	}
	return r
}

func (r *request) run() {
	r.ctx.Request.SetBodyString(r.body)
	r.ctx.Response.Reset()
	r.handle(&r.ctx)
	r.ctx.ResetUserValues()
}

// BenchmarkBulk50Flags evaluates 50 flags by OFREP and by /flags with the same
// details, alternately, and reports the ratio of their CPU time.
func BenchmarkBulk50Flags(b *testing.B) {
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, half(50), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := snapshots.Poll(b.Context()); err != nil {
		b.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, decide.Lookups{}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	wcfg := web.DefaultConfig()
	wcfg.AccessLog = web.LogServerErrors
	s, err := web.New(wcfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	s.Mount(decide.NewHTTP(d, nil), ofrep.NewHTTP(cfg, d, nil, nil, nil))
	handle, err := s.Handler()
	if err != nil {
		b.Fatal(err)
	}
	var properties []string
	for i := range 10 {
		properties = append(properties, fmt.Sprintf(`"p%d":"v%d"`, i, i))
	}
	list := strings.Join(properties, ",")
	bulk := newRequest(b, handle, pathFlags, `{"context":{"targetingKey":"user-42",`+list+`}}`)
	person := `{"token":"phc_test","distinct_id":"user-42","groups":{},"person_properties":{` + list + `}}`
	three := newRequest(b, handle, "/decide/?v=3", person)
	four := newRequest(b, handle, "/decide/?v=4", person)
	var spent [3]time.Duration
	const rounds = 50
	b.ReportAllocs()
	for b.Loop() {
		for i, r := range []*request{bulk, three, four} {
			start := cpu(b)
			for range rounds {
				r.run()
			}
			spent[i] += cpu(b) - start
		}
	}
	n := float64(b.N) * rounds
	b.ReportMetric(float64(spent[0])/n, "ofrep-cpu-ns")
	b.ReportMetric(float64(spent[1])/n, "decide3-cpu-ns")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio-v3")
	b.ReportMetric(float64(spent[0])/float64(spent[2]), "ratio-v4")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
