package eval

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sys/unix"
)

// The benchmarks of this file use internals of the package, so that they measure
// the work of an HTTP answer without the Decisions for Go callers.

func benchFlag(id int, filters string) Definition {
	return Definition{ID: int64(id), ProjectID: 1, Key: fmt.Sprintf("flag-number-%d", id), Filters: json.RawMessage(filters), Active: true, Version: 1}
}

// benchFlags returns n flags with three condition sets. The last set matches half
// the buckets.
func benchFlags(n int) []Definition {
	defs := make([]Definition, n)
	for i := range defs {
		defs[i] = benchFlag(i+1, fmt.Sprintf(`{"groups":[
			{"properties":[{"key":"p%d","type":"person","operator":"exact","value":["no-%d","neither"]}],"rollout_percentage":100},
			{"properties":[{"key":"p%d","type":"person","operator":"gt","value":"%d"}],"rollout_percentage":80},
			{"properties":[{"key":"email","type":"person","operator":"icontains","value":"corp.test"}],"rollout_percentage":50}]}`,
			i%20, i, (i+7)%20, 1000+i))
	}
	return defs
}

func benchPerson() string {
	var b strings.Builder
	b.WriteString(`{"email":"Ann.Example@Corp.Test"`)
	for i := range 20 {
		fmt.Fprintf(&b, `,"p%d":%d`, i, i*10)
	}
	return b.String() + "}"
}

func benchEvaluate(b *testing.B, defs []Definition, person string, encode bool) {
	set := Compile(defs, nil, nil, CompileOptions{})
	properties := fastjson.MustParse(person).GetObject()
	now := time.Now()
	var out []byte
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		e := NewEvaluation(set, "distinct_id_42", now)
		e.SetPersonProperties(properties)
		e.EndPersonLookup(true)
		e.Run()
		if encode {
			out = e.AppendFlags(out[:0], FormatValues)
		}
		e.Release()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(len(out)), "B/answer")
}

// cpuTime returns the CPU time of this process, which a busy machine distorts less
// than elapsed time.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEvaluateSimpleFlag(b *testing.B) {
	benchEvaluate(b, []Definition{benchFlag(1, `{"groups":[{"properties":[],"rollout_percentage":50}]}`)}, `{}`, false)
}

func BenchmarkEvaluateFiveFilters(b *testing.B) {
	benchEvaluate(b, []Definition{benchFlag(1, `{"groups":[{"properties":[
		{"key":"email","operator":"icontains","value":"corp.test"},{"key":"p1","operator":"gt","value":5},
		{"key":"p2","operator":"exact","value":["20","30"]},{"key":"email","operator":"regex","value":"(?i)^some.*test$"},
		{"key":"p3","operator":"is_set"}],"rollout_percentage":90}]}`)}, benchPerson(), false)
}

func BenchmarkEvaluate100Flags3Sets(b *testing.B) {
	benchEvaluate(b, benchFlags(100), benchPerson(), true)
}

func BenchmarkEvaluate1000Flags3Sets(b *testing.B) {
	benchEvaluate(b, benchFlags(1000), benchPerson(), true)
}

func BenchmarkCompile1000Flags(b *testing.B) {
	defs := benchFlags(1000)
	b.ReportAllocs()
	for b.Loop() {
		Compile(defs, nil, nil, CompileOptions{})
	}
}

// BenchmarkUpdate5000Flags changes one of 5,000 flags.
func BenchmarkUpdate5000Flags(b *testing.B) {
	defs := benchFlags(5000)
	set := Compile(defs, nil, nil, CompileOptions{})
	b.ReportAllocs()
	start := cpuTime(b)
	for n := 0; b.Loop(); n++ {
		next := slices.Clone(defs)
		next[n%len(next)].Version++
		defs, set = next, Update(set, next, nil, nil, CompileOptions{})
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
}

// BenchmarkUpdateAddsFlags adds flags one by one until there are 5,000.
func BenchmarkUpdateAddsFlags(b *testing.B) {
	defs := benchFlags(5000)
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		var set *Set
		for n := range defs {
			set = Update(set, defs[:n+1], nil, nil, CompileOptions{})
		}
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
}

// BenchmarkStaticFlags reports the time of each of 100 flags that are on for
// everyone, without those of a request.
func BenchmarkStaticFlags(b *testing.B) {
	defs := make([]Definition, 100)
	for i := range defs {
		defs[i] = benchFlag(i+1, `{"groups":[{"properties":[],"rollout_percentage":100}]}`)
	}
	set := Compile(defs, nil, nil, CompileOptions{})
	now := time.Now()
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		e := NewEvaluation(set, "distinct_id_42", now)
		e.EndPersonLookup(true)
		e.Run()
		e.Release()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/float64(len(defs)), "cpu-ns/flag")
}

// Benchmark50Of5000Flags selects 50 of 5,000 flags by their keys.
func Benchmark50Of5000Flags(b *testing.B) {
	set := Compile(benchFlags(5000), nil, nil, CompileOptions{})
	keys := set.Keys()[2000:2050]
	properties := fastjson.MustParse(benchPerson()).GetObject()
	var out []byte
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		e := NewEvaluation(set, "distinct_id_42", time.Now())
		e.SetPersonProperties(properties)
		e.Select(keys, false)
		e.EndPersonLookup(true)
		e.Run()
		out = e.AppendFlags(out[:0], FormatValues)
		e.Release()
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
}

// Benchmark50Flags is the comparison for Benchmark50Of5000Flags.
func Benchmark50Flags(b *testing.B) { benchEvaluate(b, benchFlags(50), benchPerson(), true) }

// BenchmarkMemory10000Flags10Projects reports the memory of the snapshots of ten
// projects with ten thousand flags each.
func BenchmarkMemory10000Flags10Projects(b *testing.B) {
	for b.Loop() {
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		sets := make([]*Set, 10)
		for i := range sets {
			sets[i] = Compile(benchFlags(10000), nil, nil, CompileOptions{})
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		b.ReportMetric(float64(heap()-before)/100000, "B/flag")
		runtime.KeepAlive(sets)
	}
}
