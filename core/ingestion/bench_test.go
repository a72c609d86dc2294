package ingestion_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/guidonhq/guidon/core/web/envelope"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

// BenchmarkReadEnvelope measures what capture does with a body.
func BenchmarkReadEnvelope(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			body := ingestiontest.BatchBody(n)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := envelope.Read(body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

// BenchmarkDecode measures what each reader of the journal does with a record.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			env, err := envelope.Read(ingestiontest.BatchBody(n))
			if err != nil {
				b.Fatal(err)
			}
			rec := event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 1, ClientIP: netip.MustParseAddr("192.0.2.7"), SentAt: env.SentAt, Items: env.Items}
			dec := event.NewDecoder(event.DefaultLimits())
			var out event.Decoded
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				dec.Decode(&rec, &out)
			}
			if len(out.Events) != n {
				b.Fatal(len(out.Events))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}
