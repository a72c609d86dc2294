package pglog_test

import (
	"bytes"
	"context"
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

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
	"github.com/guidonhq/guidon/core/journal"
)

// BenchmarkAppend appends from 1, 16 and 64 goroutines to the journal of one node, to the
// log in a Postgres server that syncs, with each compression, and to that log from three
// nodes at once. CPU is that of this process and that of the server.
//
//	go test -run - -bench Append ./core/eventlog/pglog
func BenchmarkAppend(b *testing.B) {
	server := dbtest.StartKillable(b)
	d, err := db.Open(b.Context(), db.Config{URL: server.URL}, "")
	must(b, err)
	b.Cleanup(func() { _ = d.Close() })
	must(b, d.Migrate(b.Context()))
	open := func(b *testing.B, compression string) *pglog.Log {
		cfg := pglog.DefaultConfig()
		cfg.Compression = compression
		l, err := pglog.Open(b.Context(), cfg, pglog.Options{DB: d, Cursors: cursors.New(d), Log: zap.NewNop()})
		must(b, err)
		return l
	}
	for _, connections := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("journal/%d", connections), func(b *testing.B) {
			j, err := journal.Open(journal.DefaultConfig(), b.TempDir(), zap.NewNop(), nil)
			must(b, err)
			benchAppend(b, d, connections, eventlog.Single(j))
		})
		for _, compression := range []string{"none", "lz4", "zstd", "snappy"} {
			b.Run(fmt.Sprintf("postgres-%s/%d", compression, connections), func(b *testing.B) {
				benchAppend(b, d, connections, open(b, compression))
			})
		}
		b.Run(fmt.Sprintf("three-nodes/%d", connections), func(b *testing.B) {
			benchAppend(b, d, connections, open(b, "lz4"), open(b, "lz4"), open(b, "lz4"))
		})
	}
}

// benchAppend appends b.N requests, divided among the logs, from so many goroutines each.
func benchAppend(b *testing.B, d *db.DB, connections int, logs ...eventlog.Log) {
	requests := benchRequests()
	total := connections * len(logs)
	took := make([][]time.Duration, total)
	var work sync.WaitGroup
	wal := walBytes(b, d)
	b.ResetTimer()
	cpu, serverCPU := cpuTime(b), serverTime(b, d)
	for c := range total {
		l := logs[c%len(logs)]
		work.Go(func() {
			for i := c; i < b.N; i += total {
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
	cpu, serverCPU = cpuTime(b)-cpu, serverTime(b, d)-serverCPU
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.ReportMetric(micros(cpu)/float64(b.N), "cpu-µs/op")
	b.ReportMetric(micros(serverCPU)/float64(b.N), "server-µs/op")
	b.ReportMetric(float64(walBytes(b, d)-wal)/float64(b.N), "wal-B/op")
	b.ReportMetric(micros(all[len(all)/2]), "p50-µs")
	b.ReportMetric(micros(all[len(all)*99/100]), "p99-µs")
	for _, l := range logs {
		must(b, l.Close(context.WithoutCancel(b.Context())))
	}
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

func walBytes(b *testing.B, d *db.DB) (n int64) {
	must(b, d.Pool().QueryRow(b.Context(), "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::BIGINT").Scan(&n))
	return n
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverTime is the CPU time of all processes of the server, those that have ended
// included.
func serverTime(b *testing.B, d *db.DB) (total time.Duration) {
	var dir string
	must(b, d.Pool().QueryRow(b.Context(), "SELECT current_setting('data_directory')").Scan(&dir))
	file, err := os.ReadFile(dir + "/postmaster.pid")
	must(b, err)
	main, _, _ := bytes.Cut(file, []byte("\n"))
	stats, err := os.ReadDir("/proc")
	must(b, err)
	for _, s := range stats {
		text, err := os.ReadFile("/proc/" + s.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		own := s.Name() == string(main)
		if !own && fields[1] != string(main) {
			continue
		}
		for i, f := range fields[11:15] { // of the process, then of its ended children
			if ticks, _ := strconv.Atoi(f); i < 2 || own {
				total += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return total
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead reads records of one partition that 16 connections have appended: from the
// server, and by a second reader from memory.
func BenchmarkRead(b *testing.B) {
	server := dbtest.StartKillable(b)
	d, err := db.Open(b.Context(), db.Config{URL: server.URL}, "")
	must(b, err)
	b.Cleanup(func() { _ = d.Close() })
	must(b, d.Migrate(b.Context()))
	open := func(tail int) *pglog.Log {
		cfg := pglog.DefaultConfig()
		cfg.Partitions, cfg.TailBytes = 1, tail
		l, err := pglog.Open(b.Context(), cfg, pglog.Options{DB: d, Cursors: cursors.New(d), Log: zap.NewNop()})
		must(b, err)
		b.Cleanup(func() { _ = l.Close(context.WithoutCancel(b.Context())) })
		return l
	}
	l := open(1)
	const records = 20_000
	requests := benchRequests()
	var work sync.WaitGroup
	for c := range 64 {
		work.Go(func() {
			for i := c; i < records; i += 64 {
				if err := l.Append(b.Context(), []eventlog.Part{{Data: requests[i%len(requests)]}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	work.Wait()
	for name, l := range map[string]*pglog.Log{"server": l, "memory": open(64 << 20)} {
		b.Run(name, func(b *testing.B) { benchRead(b, d, l.Partition(0, 0), records) })
	}
}

func benchRead(b *testing.B, d *db.DB, p eventlog.Partition, records uint64) {
	cpu, serverCPU := cpuTime(b), serverTime(b, d)
	read := 0
	for b.Loop() {
		for after := uint64(0); after < records; {
			got, err := p.Read(b.Context(), after, 500, 1<<20)
			must(b, err)
			after = got[len(got)-1].Seq
			read += len(got)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/1000/float64(read), "cpu-µs/record")
	b.ReportMetric(float64((serverTime(b, d)-serverCPU).Nanoseconds())/1000/float64(read), "server-µs/record")
}
