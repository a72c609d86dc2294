package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart measures the time from exec to the first answer of
// /_readiness, with one file sink, on an empty directory and on one that holds
// ten thousand events, and the memory of the idle server and its plugin.
//
//	go test ./cmd/guidon -run '^$' -bench Start -benchtime 5x
func BenchmarkStart(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		var total time.Duration
		for range b.N {
			s := newServer(b)
			total += s.start(b)
			s.kill()
		}
		b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ready-ms")
	})
	b.Run("existing", func(b *testing.B) {
		s := newServer(b)
		s.start(b)
		for n := range 1000 {
			if _, err := s.post("/batch/", tenEvents(s.project, n)); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.stop(b); err != nil {
			b.Fatal(err)
		}
		var total time.Duration
		b.ResetTimer()
		for range b.N {
			total += s.start(b)
			if err := s.stop(b); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ready-ms")
		s.start(b)
		time.Sleep(12 * time.Second) // until the memory of the start is returned
		b.ReportMetric(resident(b, s.cmd.Process.Pid), "server-MB")
		b.ReportMetric(resident(b, pluginProcess(b, s.cmd.Process.Pid)), "plugin-MB")
	})
}

func tenEvents(key string, n int) string {
	items := make([]string, 10)
	for i := range items {
		items[i] = fmt.Sprintf(`{"event":"seed","distinct_id":"u%d","properties":{"n":%d}}`, i, n)
	}
	return fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, key, strings.Join(items, ","))
}
