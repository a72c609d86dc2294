package kafka_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/journal"
)

// BenchmarkAppend appends from 1, 16 and 64 goroutines to the journal of one node and to a
// topic, with each compression. GUIDON_BENCH_KAFKA is the URL of a topic on real brokers,
// which is created; without it only the journal runs. CPU is that of this process.
//
//	GUIDON_BENCH_KAFKA=kafka://127.0.0.1:9092/bench go test -run - -bench Append ./core/eventlog/kafka
func BenchmarkAppend(b *testing.B) {
	for _, connections := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("journal/%d", connections), func(b *testing.B) {
			j, err := journal.Open(journal.DefaultConfig(), b.TempDir(), zap.NewNop(), nil)
			must(b, err)
			benchAppend(b, eventlog.Single(j), connections)
		})
		for _, compression := range []string{"none", "lz4", "zstd", "snappy"} {
			b.Run(fmt.Sprintf("kafka-%s/%d", compression, connections), func(b *testing.B) {
				cfg := kafka.DefaultConfig()
				if cfg.URL = os.Getenv("GUIDON_BENCH_KAFKA"); cfg.URL == "" {
					b.Skip("GUIDON_BENCH_KAFKA is not set")
				}
				cfg.Compression, cfg.AcceptWeakTopic = compression, true
				l, err := kafka.Open(b.Context(), cfg, kafka.Options{Cursors: cursors.New(dbtest.SQLite(b)), Log: zap.NewNop()})
				must(b, err)
				benchAppend(b, l, connections)
			})
		}
	}
}

// benchAppend appends b.N records and reports latency and CPU.
func benchAppend(b *testing.B, l eventlog.Log, connections int) {
	defer func() { must(b, l.Close(ctx(b))) }()
	requests := benchRequests()
	took := make([][]time.Duration, connections)
	var work sync.WaitGroup
	b.ResetTimer()
	cpu := cpuTime(b)
	for c := range connections {
		work.Go(func() {
			for i := c; i < b.N; i += connections {
				begun := time.Now()
				part := eventlog.Part{Partition: i % l.Partitions(), Data: requests[i%len(requests)]}
				if err := l.Append(b.Context(), []eventlog.Part{part}); err != nil {
					b.Error(err)
					return
				}
				took[c] = append(took[c], time.Since(begun))
			}
		})
	}
	work.Wait()
	cpu = cpuTime(b) - cpu
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.ReportMetric(micros(cpu)/float64(b.N), "cpu-µs/op")
	b.ReportMetric(micros(all[len(all)/2]), "p50-µs")
	b.ReportMetric(micros(all[len(all)*99/100]), "p99-µs")
}

// benchRequests returns requests of one event, of about 1 KiB of JSON.
func benchRequests() (out [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 256 {
		var text strings.Builder
		fmt.Fprintf(&text, `{"api_key":"phc_0123456789abcdefghij","event":"$pageview","distinct_id":"%016x%016x","timestamp":"2026-11-23T06:%02d:%02d.123Z","uuid":"%032x","properties":{`,
			r.Uint64(), r.Uint64(), i%60, i%59, r.Uint64())
		for p := range 16 {
			fmt.Fprintf(&text, `"$property_%d":"value %d of %s",`, p, r.IntN(1000), strconv.Itoa(r.IntN(1<<30)))
		}
		text.WriteString(`"$lib":"web","$lib_version":"1.200.0","$current_url":"https://example.com/products/shoes?page=3"}}`)
		out = append(out, []byte(text.String()))
	}
	return out
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
