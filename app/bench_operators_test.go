package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/plugins"
)

// cidrHost returns a host with a ready cidr process.
func cidrHost(b *testing.B) *host.Host {
	b.Helper()
	cfg := settings.Default()
	in := settings.Instance{Name: "networks", Use: "cidr", Kind: settings.KindMatcher}
	in.Timeouts.Health = time.Minute
	cfg.Instances = []settings.Instance{in}
	h, err := host.New(cfg, host.Deps{DataDir: b.TempDir(), Version: "bench", BundledNames: plugins.Names(), Log: zap.NewNop(),
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Stop(context.Background()) })
	if err := h.Matchers()[0].Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	return h
}

func operatorsOf(b *testing.B, h *host.Host, cacheBytes int) *operators.Operators {
	b.Helper()
	cfg := operators.DefaultConfig()
	cfg.CacheBytes = cacheBytes
	o, err := app.NewOperators(cfg, h, plugins.Operators, zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// distinctPairs returns n pairs with different programs and values.
func distinctPairs(b *testing.B, o *operators.Operators, n int) []match.Pair {
	b.Helper()
	op, ok := o.ForSave().Operator("cidr/contains")
	if !ok {
		b.Fatal("no operator cidr/contains")
	}
	pairs := make([]match.Pair, n)
	for i := range pairs {
		made, err := op.Compile(fmt.Appendf(nil, `"10.%d.0.0/16"`, i))
		if err != nil {
			b.Fatal(err)
		}
		pairs[i] = match.Pair{Program: made.Program, Value: match.Text(fmt.Sprintf("10.%d.2.3", i))}
	}
	return pairs
}

// reportQuantiles reports the median and the 99th percentile of the times.
func reportQuantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
}

// BenchmarkOperatorPairs sends pairs that are not in the cache to a cidr process, in
// one call.
func BenchmarkOperatorPairs(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			o := operatorsOf(b, cidrHost(b), 0)
			pairs, results := distinctPairs(b, o, n), make([]match.Result, n)
			took := make([]time.Duration, 0, 1<<16)
			for b.Loop() {
				clear(results)
				ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
				from := time.Now()
				o.MatchPairs(ctx, from, pairs, results)
				took = append(took, time.Since(from))
				cancel()
			}
			reportQuantiles(b, took)
		})
	}
}

// memoryFlags is a source of flags in memory.
type memoryFlags eval.ProjectDefinitions

func (s *memoryFlags) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	return eval.ProjectDefinitions(*s), nil
}

func (s *memoryFlags) Revisions(context.Context) (map[int64]int64, error) {
	return map[int64]int64{1: 1}, nil
}

// BenchmarkDecideOperator runs a decide request without its network: one flag with
// a condition on a property, with a built-in operator and with a cached operator of
// a plugin. The two alternate, so that other load affects both, and it compares CPU
// time.
func BenchmarkDecideOperator(b *testing.B) {
	o := operatorsOf(b, cidrHost(b), 1<<20)
	variants := []func(){decideOnce(b, o, "exact", `["10.1.2.3"]`), decideOnce(b, o, "cidr/contains", `"10.0.0.0/8"`)}
	const turn = 500
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for w := range variants {
			w = (w + n) % 2
			from := cpuTime(b)
			for range turn {
				variants[w]()
			}
			took[w] = append(took[w], (cpuTime(b)-from)/turn)
		}
	}
	for w := range took {
		slices.Sort(took[w])
	}
	builtIn, cached := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(float64(builtIn), "built-in-cpu-ns")
	b.ReportMetric(float64(cached), "cached-cpu-ns")
	b.ReportMetric(float64(cached)/float64(builtIn), "ratio")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// decideOnce returns a function that answers one request for a flag with that
// condition.
func decideOnce(b *testing.B, o *operators.Operators, operator, value string) func() {
	b.Helper()
	filters := fmt.Sprintf(`{"groups":[{"properties":[{"key":"ip","type":"person","operator":%q,"value":%s}],"rollout_percentage":100}]}`, operator, value)
	cfg := decide.DefaultConfig()
	cfg.PluginTimeout = 50 * time.Millisecond
	snapshots, err := decide.NewSnapshots(cfg, &memoryFlags{Flags: []eval.Definition{
		{ID: 1, ProjectID: 1, Key: "office", Active: true, Filters: []byte(filters)},
	}}, o, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := snapshots.Poll(b.Context()); err != nil {
		b.Fatal(err)
	}
	decider, err := decide.NewDecider(cfg, snapshots, decide.Lookups{Matchers: o}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	handle := handler(b, decide.NewHTTP(decider, nil))
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/decide/?v=3")
	ctx.Request.Header.SetContentType("application/json")
	return func() {
		ctx.Request.SetBodyString(`{"token":"phc_test","distinct_id":"user-42","person_properties":{"ip":"10.1.2.3"}}`)
		ctx.Response.Reset()
		handle(&ctx)
		ctx.ResetUserValues()
		if !bytes.Contains(ctx.Response.Body(), []byte(`"office":true`)) {
			b.Fatalf("%s", ctx.Response.Body())
		}
	}
}

func handler(b *testing.B, routes ...web.Routes) fasthttp.RequestHandler {
	b.Helper()
	cfg := web.DefaultConfig()
	cfg.AccessLog = web.LogServerErrors
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	s.Mount(routes...)
	handle, err := s.Handler()
	if err != nil {
		b.Fatal(err)
	}
	return handle
}

// BenchmarkHungOperator measures the delay that a hung process adds to a request:
// the deadline of 10 ms, and almost nothing once the breaker is open.
func BenchmarkHungOperator(b *testing.B) {
	h := cidrHost(b)
	pid := h.Status()[0].PID
	ask := func(o *operators.Operators, pairs []match.Pair) time.Duration {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
		defer cancel()
		results := make([]match.Result, len(pairs))
		from := time.Now()
		o.MatchPairs(ctx, from, pairs, results)
		return time.Since(from)
	}
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("asked", func(b *testing.B) {
		var took []time.Duration
		var o *operators.Operators
		var pairs []match.Pair
		for n := 0; b.Loop(); n++ {
			if n%10 == 0 { // before the breaker or the host notices
				o = operatorsOf(b, h, 0)
				pairs = distinctPairs(b, o, 1)
			}
			signal(syscall.SIGSTOP)
			took = append(took, ask(o, pairs))
			signal(syscall.SIGCONT)
			if err := h.Matchers()[0].Ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			for ask(o, pairs) > 9*time.Millisecond { // until it answers again
				continue
			}
		}
		reportQuantiles(b, took)
	})
	b.Run("spared", func(b *testing.B) {
		o := operatorsOf(b, h, 0)
		pairs := distinctPairs(b, o, 1)
		signal(syscall.SIGSTOP)
		defer signal(syscall.SIGCONT)
		for range 30 {
			ask(o, pairs)
		}
		var took []time.Duration
		for b.Loop() {
			if len(took) == 50_000 {
				took = took[:0]
			}
			took = append(took, ask(o, pairs))
		}
		reportQuantiles(b, took)
	})
}
