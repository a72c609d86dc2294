package journal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
)

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// produce has n goroutines share b.N appends, and reports what each cost.
func produce(b *testing.B, n, size int, groups *atomic.Int64, appendOne func([]byte) error) {
	bodies := bodies(size)
	var left atomic.Int64
	left.Store(int64(b.N))
	waits := make([][]time.Duration, n)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	before, groupsBefore := cpuTime(b), groups.Load()
	var wg sync.WaitGroup
	for p := range n {
		wg.Go(func() {
			for i := p; left.Add(-1) >= 0; i++ {
				begun := time.Now()
				if err := appendOne(bodies[i%len(bodies)]); err != nil {
					b.Error(err)
					return
				}
				waits[p] = append(waits[p], time.Since(begun))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/float64(groups.Load()-groupsBefore), "appends/fsync")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// bodies are JSON requests of about size bytes, as alike and as different as
// the events of one site: what differs is ids, times and numbers.
func bodies(size int) [][]byte {
	pages := []string{"/", "/pricing", "/docs/start", "/blog/how-we-count", "/account/settings"}
	out := make([][]byte, 64)
	for i := range out {
		for len(out[i]) < size {
			out[i] = fmt.Appendf(out[i], `{"uuid":"%s","event":"$pageview","distinct_id":"%s","timestamp":"2026-11-21T%02d:%02d:%02d.%03dZ",`+
				`"properties":{"$os":"Linux","$browser":"Firefox","$browser_version":%d,"$screen_height":%d,"$screen_width":%d,`+
				`"$current_url":"https://shop.example.com%s?ref=%s","$host":"shop.example.com","$pathname":"%[10]s","$session_id":"%[12]s",`+
				`"$lib":"web","$lib_version":"1.449.2","$insert_id":"%[13]s","token":"phc_0123456789abcdefghijklmnopqrstuvwxyz","plan":"team","seats":%[14]d}}`+"\n",
				rand.Text(), rand.Text()[:12], i%24, i%60, i%59, i*7%1000, 100+i%9, 700+i*3, 1200+i*5,
				pages[i%len(pages)], rand.Text()[:6], rand.Text(), rand.Text()[:16], i)
		}
	}
	return out
}

func benchmarkAppend(b *testing.B, producers, size int) {
	var groups atomic.Int64
	cfg := journal.DefaultConfig()
	cfg.MaxBytes = 256 << 20
	j, err := journal.OpenHooked(cfg, b.TempDir(), zap.NewNop(), nil, journal.Hooks{
		BeforeCommit: func(n int) error {
			if n > 0 {
				groups.Add(1)
			}
			return nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Close(context.Background()) }()
	produce(b, producers, size, &groups, func(data []byte) error {
		_, err := j.Append(context.Background(), data)
		return err
	})
}

// BenchmarkAppend stores single requests of 600 bytes. "floor" is the least
// that any journal with this promise does: the same hand-over to one goroutine
// that writes everything waiting to a plain file and syncs it.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("journal/producers=%d", n), func(b *testing.B) { benchmarkAppend(b, n, 600) })
		b.Run(fmt.Sprintf("floor/producers=%d", n), func(b *testing.B) { benchmarkFloor(b, n, 600) })
	}
}

// BenchmarkAppendBatch stores requests of 60 kB: batches of 100 events.
func BenchmarkAppendBatch(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("journal/producers=%d", n), func(b *testing.B) { benchmarkAppend(b, n, 60_000) })
		b.Run(fmt.Sprintf("floor/producers=%d", n), func(b *testing.B) { benchmarkFloor(b, n, 60_000) })
	}
}

type floorRequest struct {
	data []byte
	done chan error
}

func benchmarkFloor(b *testing.B, producers, size int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var groups atomic.Int64
	line := make(chan *floorRequest, 4096)
	go func() {
		var buf []byte
		var group []*floorRequest
		for r := range line {
			group, buf = append(group[:0], r), append(buf[:0], r.data...)
			for more := true; more; {
				select {
				case r := <-line:
					group, buf = append(group, r), append(buf, r.data...)
				default:
					more = false
				}
			}
			_, err := f.Write(buf)
			if err == nil {
				err = f.Sync()
			}
			groups.Add(1)
			for _, r := range group {
				r.done <- err
			}
		}
	}()
	pool := sync.Pool{New: func() any { return &floorRequest{done: make(chan error, 1)} }}
	produce(b, producers, size, &groups, func(data []byte) error {
		r := pool.Get().(*floorRequest)
		r.data = data
		line <- r
		err := <-r.done
		pool.Put(r)
		return err
	})
	close(line)
}
