package retention

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/sdk"
)

// BenchmarkRun deletes half of the events (GUIDON_BENCH_EVENTS, 20,000 when it is not
// set) beside a writer of 20 events each 50 ms, and reports the latency of the writer,
// the size of the write-ahead log and the size of the file before, after, and when as
// many events were stored again.
func BenchmarkRun(b *testing.B) {
	n := 20_000
	if v := os.Getenv("GUIDON_BENCH_EVENTS"); v != "" {
		if _, err := fmt.Sscan(v, &n); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("sqlite", func(b *testing.B) { benchRun(b, dbtest.SQLite(b), n) })
	b.Run("postgres", func(b *testing.B) { benchRun(b, dbtest.Postgres(b), n) })
}

func benchRun(b *testing.B, d *db.DB, n int) {
	w := newWorld(b, d, 30*day)
	made := 0
	add := func(count int, age time.Duration) {
		for range count / 1000 {
			batch := make([]*sdk.Event, 1000)
			for i := range batch {
				made++
				at := time.Now().Add(-age + time.Duration(made)*time.Millisecond)
				batch[i] = &sdk.Event{
					UUID: uuid.Must(uuid.NewV7()).String(), ProjectID: 1, Name: fmt.Sprint("event_", made%20), DistinctID: fmt.Sprint("user-", made%50_000), Timestamp: at, ReceivedAt: at,
					Properties: json.RawMessage(fmt.Sprintf(`{"$current_url":"https://app.example.com/insights/%d","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$lib":"web","$screen_height":1080,"amount":%d,"text":"%0200d"}`, made%500, made, made)),
				}
			}
			if _, err := w.events.Store(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	size := func() float64 {
		if d.File() == "" {
			return 0
		}
		info, err := os.Stat(d.File())
		if err != nil {
			b.Fatal(err)
		}
		return float64(info.Size()) / (1 << 20)
	}
	add(n/2, 60*day)
	add(n/2, day)
	before := size()
	w.set(1, Rules{})
	end, stopped := make(chan struct{}), make(chan struct{})
	var latencies []time.Duration
	largest := int64(0)
	go func() {
		defer close(stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				start := time.Now()
				w.add(1, "live", slices.Repeat([]int{0}, 20)...)
				latencies = append(latencies, time.Since(start))
				largest = max(largest, d.LogBytes())
			}
		}
	}()
	start := time.Now()
	w.run()
	took := time.Since(start)
	close(end)
	<-stopped
	slices.Sort(latencies)
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(float64(n/2)/took.Seconds(), "events/s")
	if len(latencies) > 0 {
		b.ReportMetric(float64(latencies[len(latencies)*99/100].Milliseconds()), "write-p99-ms")
	}
	b.ReportMetric(float64(largest)/(1<<20), "wal-MiB")
	b.ReportMetric(before, "file-before-MiB")
	b.ReportMetric(size(), "file-after-MiB")
	add(n/2, day)
	b.ReportMetric(size(), "file-refilled-MiB")
}
