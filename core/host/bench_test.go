package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// heavy is a batch of n records of size bytes each.
func heavy(n, size int) *sdk.Batch {
	b := batch("ok", 0, n)
	for i := range b.Records {
		b.Records[i].JSON = append([]byte(`{"p":"`), bytes.Repeat([]byte("x"), size-8)...)
		b.Records[i].JSON = append(b.Records[i].JSON, '"', '}')
	}
	return b
}

// BenchmarkWriteBatch sends 1,000 events of 500 bytes to a sink that does
// nothing, through a real process with mutual TLS. It reports events a second
// and the CPU of host and plugin together for each event.
func BenchmarkWriteBatch(b *testing.B) {
	for _, inFlight := range []int{1, 4} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			r := start(b, config(instance("p", "probe", nil)))
			s := r.sink(b)
			pid := r.Status()[0].PID
			load := heavy(1000, 500)
			b.SetBytes(int64(load.Size()))
			before := cpu(b, 0) + cpu(b, pid)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range inFlight {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if got, err := s.Write(context.Background(), load); err != nil || got.Outcome != sdk.Committed {
							b.Errorf("%+v %v", got, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			events := float64(b.N) * float64(len(load.Records))
			b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric((cpu(b, 0)+cpu(b, pid)-before)*1e6/events, "cpu-µs/event")
		})
	}
}

// BenchmarkRestart measures from kill -9 to the first write that succeeds.
func BenchmarkRestart(b *testing.B) {
	cfg := config(instance("p", "probe", nil))
	cfg.Restart.QuarantineExits = 1 << 30
	cfg.Restart.ResetAfter = 0 // every restart is the first
	r := start(b, cfg)
	s := r.sink(b)
	one := batch("ok", 0, 1)
	b.ResetTimer()
	for b.Loop() {
		pid := r.Status()[0].PID
		kill(b, pid, syscall.SIGKILL)
		for {
			if err := s.Ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			_, err := s.Write(b.Context(), one)
			if now := r.Status()[0].PID; err == nil && now != pid && now != 0 {
				break
			}
		}
	}
}

// BenchmarkStart measures from a host that is made to sinks that are all ready:
// one, twenty that share a process, and twenty with a process each.
func BenchmarkStart(b *testing.B) {
	for _, bb := range []struct {
		name     string
		n        int
		isolated bool
	}{{"instances=1", 1, false}, {"instances=20", 20, false}, {"processes=20", 20, true}} {
		b.Run(bb.name, func(b *testing.B) {
			instances := make([]settings.Instance, bb.n)
			for i := range instances {
				instances[i] = instance(fmt.Sprintf("p%d", i), "probe", nil)
				instances[i].Isolated, instances[i].Timeouts.Start = bb.isolated, time.Minute
			}
			for b.Loop() {
				startAndStop(b, config(instances...))
			}
		})
	}
}

func startAndStop(b *testing.B, cfg settings.Config) {
	b.Helper()
	h, err := host.New(cfg, host.Deps{DataDir: b.TempDir(), Bundled: bundled})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, s := range h.Sinks() {
		if err := s.Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	defer b.StartTimer()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		b.Fatal(err)
	}
}

// cpu is the time a process has used, in seconds; 0 is this one.
func cpu(b *testing.B, pid int) float64 {
	b.Helper()
	path := "/proc/self/stat"
	if pid != 0 {
		path = "/proc/" + strconv.Itoa(pid) + "/stat"
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / 100
}
