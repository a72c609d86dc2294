package erasure

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
)

var backlogRecords = flag.Int("backlog", 100_000, "records of the backlog of BenchmarkTakeover")

// BenchmarkTakeover measures what a node reads for erasures before it processes the first
// event of a partition with a backlog of requests of 1.1 KiB, by a node that has none of it
// in memory: all of it, and with a position at which the former owner was 10,000 records
// before the end. The broker is in this process, unless GUIDON_BENCH_KAFKA is the URL of a
// topic on real brokers, which is created.
//
//	go test -run - -bench Takeover ./core/ingestion/erasure -backlog 1000000
func BenchmarkTakeover(b *testing.B) {
	b.Run("postgres", func(b *testing.B) {
		d := dbtest.Postgres(b)
		benchTakeover(b, d, func() eventlog.Log {
			cfg := pglog.DefaultConfig()
			cfg.Partitions, cfg.AcceptWeakTopic = 1, true
			l, err := pglog.Open(b.Context(), cfg, pglog.Options{DB: d, Cursors: cursors.New(d), Log: zap.NewNop()})
			if err != nil {
				b.Fatal(err)
			}
			return l
		})
	})
	b.Run("kafka", func(b *testing.B) {
		d, url := dbtest.Postgres(b), os.Getenv("GUIDON_BENCH_KAFKA")
		if url == "" {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(c.Close)
			url = "kafka://" + c.ListenAddrs()[0] + "/guidon"
		}
		benchTakeover(b, d, func() eventlog.Log {
			cfg := kafka.DefaultConfig()
			cfg.URL, cfg.Partitions, cfg.AcceptWeakTopic = url, 1, true
			l, err := kafka.Open(b.Context(), cfg, kafka.Options{Cursors: cursors.New(d), Log: zap.NewNop()})
			if err != nil {
				b.Fatal(err)
			}
			return l
		})
	})
}

// benchTakeover measures takeovers of a log that open opens each time.
func benchTakeover(b *testing.B, d *db.DB, open func() eventlog.Log) {
	const behind = 10_000
	l := open()
	appendBacklog(b, l, *backlogRecords-behind)
	execute(b, d, "ANALYZE") // as autovacuum does, which is off in tests
	takeOverOnce(b, d, l)    // writes the position
	appendBacklog(b, l, behind)
	closeLog(b, l)
	for _, position := range []bool{true, false} {
		b.Run(fmt.Sprintf("position=%t", position), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if !position {
					execute(b, d, "DELETE FROM erasure_scans")
				}
				l := open()
				b.StartTimer()
				takeOverOnce(b, d, l)
				b.StopTimer()
				closeLog(b, l)
				b.StartTimer()
			}
		})
	}
}

func takeOverOnce(b *testing.B, d *db.DB, l eventlog.Log) {
	b.Helper()
	s := New(d, nil, &fakePersons{}, zap.NewNop())
	s.OnLog(l)
	p := s.Partition(0)
	p.FollowCursor(cursorAt(0))
	takeOver(b, p, 0)
}

func closeLog(b *testing.B, l eventlog.Log) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		b.Error(err)
	}
}

func appendBacklog(b *testing.B, l eventlog.Log, records int) {
	b.Helper()
	requests := benchRequests()
	for records > 0 {
		parts := make([]eventlog.Part, min(1000, records))
		for i := range parts {
			parts[i].Data = requests[i%len(requests)]
		}
		if err := l.Append(b.Context(), parts); err != nil {
			b.Fatal(err)
		}
		records -= len(parts)
	}
}

// benchRequests returns requests of about 1.1 KiB.
func benchRequests() (out [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 256 {
		var text strings.Builder
		fmt.Fprintf(&text, `R{"api_key":"phc_0123456789abcdefghij","event":"$pageview","distinct_id":"%016x%016x","uuid":"%032x","properties":{`, r.Uint64(), r.Uint64(), r.Uint64())
		for p := range 24 {
			fmt.Fprintf(&text, `"$property_%d":"value %d of %d",`, p, r.IntN(1000), r.IntN(1<<30))
		}
		text.WriteString(`"$lib":"web","$current_url":"https://example.com/products/shoes?page=3"}}`)
		out = append(out, []byte(text.String()))
	}
	return out
}
