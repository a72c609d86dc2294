package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/journal"
)

// BenchmarkRead reads records of 600 bytes, a thousand at a time, from memory
// and from the file; one operation is one record.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		tail int
	}{{"memory", 64 << 20}, {"file", 0}} {
		b.Run(c.name, func(b *testing.B) {
			const records = 20_000
			cfg := testConfig()
			cfg.TailBytes = c.tail
			j := open(b, cfg, b.TempDir(), journal.Hooks{})
			appendAll(b, j, records)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpuTime(b)
			for after, n := uint64(0), 0; n < b.N; {
				got, err := j.Read(context.Background(), after, 1000, 1<<20)
				must(b, err)
				n += len(got)
				if after += uint64(len(got)); after >= records {
					after = 0
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// appendAll appends n records of 600 bytes, 64 at a time.
func appendAll(b *testing.B, j journal.Journal, n int) {
	bodies := bodies(600)
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				if _, err := j.Append(context.Background(), bodies[i%64]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkFollow is the whole path of a record: 64 producers append it, three
// readers that keep up read it and commit.
func BenchmarkFollow(b *testing.B) {
	for _, c := range []struct {
		name string
		tail int
	}{{"memory", 8 << 20}, {"file", 0}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := testConfig()
			cfg.TailBytes = c.tail
			var fsyncs atomic.Int64
			j := open(b, cfg, b.TempDir(), journal.Hooks{BeforeCommit: func(int) error {
				fsyncs.Add(1)
				return nil
			}})
			b.ReportAllocs()
			b.ResetTimer()
			before := cpuTime(b)
			var wg sync.WaitGroup
			for r := range 3 {
				wg.Go(func() { followAll(b, j, fmt.Sprint(r), uint64(b.N)) })
			}
			appendAll(b, j, b.N)
			wg.Wait()
			b.ReportMetric(float64(b.N)/float64(fsyncs.Load()), "appends/fsync")
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func followAll(b *testing.B, j journal.Journal, name string, last uint64) {
	ctx := context.Background()
	p, err := j.Register(ctx, name, journal.Begin)
	for err == nil && p.Seq < last {
		if err = j.Wait(ctx, p.Seq); err != nil {
			break
		}
		var records []journal.Record
		if records, err = j.Read(ctx, p.Seq, 1000, 1<<20); err != nil || len(records) == 0 {
			break
		}
		p.Seq, p.Count = records[len(records)-1].Seq, p.Count+uint64(len(records))
		err = j.Commit(ctx, name, p)
	}
	if err != nil || p.Count != last {
		b.Errorf("reader %s saw %d of %d records: %v", name, p.Count, last, err)
	}
}

// BenchmarkOpen opens a journal that was closed, and one whose process was
// killed when its write-ahead log was at its longest.
func BenchmarkOpen(b *testing.B) {
	source := b.TempDir()
	j := open(b, testConfig(), source, journal.Hooks{})
	appendAll(b, j, 25_000)
	var crashed []string
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(file(source) + suffix)
		must(b, err)
		crashed = append(crashed, string(content))
	}
	b.Logf("write-ahead log of %d bytes", len(crashed[1]))
	must(b, j.Close(context.Background()))
	closed, err := os.ReadFile(file(source))
	must(b, err)
	for _, c := range []struct {
		name    string
		content []string
	}{{"closed", []string{string(closed), ""}}, {"killed", crashed}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			must(b, os.MkdirAll(filepath.Dir(file(dir)), 0o700))
			for b.Loop() {
				b.StopTimer()
				for i, suffix := range []string{"", "-wal"} {
					must(b, os.WriteFile(file(dir)+suffix, []byte(c.content[i]), 0o600))
				}
				_ = os.Remove(file(dir) + "-shm")
				b.StartTimer()
				j := open(b, testConfig(), dir, journal.Hooks{})
				b.StopTimer()
				must(b, j.Close(context.Background()))
				b.StartTimer()
			}
		})
	}
}
