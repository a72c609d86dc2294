package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// half is a project of n flags, every second one with a property condition.
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

func benchDecide(b *testing.B, flags int, l decide.Lookups, person string) {
	d, _ := decider(b, half(flags), l)
	cfg := web.DefaultConfig()
	cfg.AccessLog = web.LogServerErrors
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		b.Fatal(err)
	}
	s.Mount(decide.NewHTTP(d, nil))
	handle, err := s.Handler()
	if err != nil {
		b.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/decide/?v=3")
	ctx.Request.Header.SetContentType("application/json")
	body := `{"token":"phc_test","distinct_id":"user-42","groups":{}` + person + `}`
	b.ReportAllocs()
	start := cpu(b)
	for b.Loop() {
		ctx.Request.SetBodyString(body)
		ctx.Response.Reset()
		handle(&ctx)
		ctx.ResetUserValues()
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
	if ctx.Response.StatusCode() != 200 || !strings.Contains(string(ctx.Response.Body()), `"errorComputingFlags":false`) {
		b.Fatalf("%s", ctx.Response.Body())
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func properties() string {
	var out []string
	for i := range 10 {
		out = append(out, fmt.Sprintf(`"p%d":"v%d"`, i, i))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// BenchmarkDecide50FlagsOverrides is a whole request without its network:
// gate, body, key, evaluation, answer.
func BenchmarkDecide50FlagsOverrides(b *testing.B) {
	benchDecide(b, 50, decide.Lookups{}, `,"person_properties":`+properties())
}

// BenchmarkDecide5Flags and BenchmarkDecide350Flags have the numbers of flags that
// other servers publish figures for.
func BenchmarkDecide5Flags(b *testing.B) {
	benchDecide(b, 5, decide.Lookups{}, `,"person_properties":`+properties())
}

func BenchmarkDecide350Flags(b *testing.B) {
	benchDecide(b, 350, decide.Lookups{}, `,"person_properties":`+properties())
}

// BenchmarkDecide50Of5000Flags names 50 of 5,000 flags.
func BenchmarkDecide50Of5000Flags(b *testing.B) {
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprintf(`"flag-%d"`, 2000+i))
	}
	benchDecide(b, 5000, decide.Lookups{}, `,"flag_keys_to_evaluate":[`+strings.Join(keys, ",")+`],"person_properties":`+properties())
}

// BenchmarkDecide50FlagsStored has the properties from a store that answers
// from memory.
func BenchmarkDecide50FlagsStored(b *testing.B) {
	benchDecide(b, 50, around(&memoryStore{people: map[string]string{"user-42": properties()}}), "")
}
