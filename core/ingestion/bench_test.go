package ingestion_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion"
)

// eventBody is an event as a browser sends it, about 600 bytes.
func eventBody(n int) []byte {
	return fmt.Appendf(nil, `{"event":"$pageview","distinct_id":"0190a5a2-7b3c-7000-8000-%012d","timestamp":"2024-05-01T09:59:58.123Z",`+
		`"uuid":"0190a5a2-7b3c-7000-8000-%012d","properties":{"$os":"Linux","$browser":"Chrome","$browser_version":120,`+
		`"$device_type":"Desktop","$current_url":"https://shop.example/products/17?ref=\"mail\"","$host":"shop.example",`+
		`"$pathname":"/products/17","$screen_height":1080,"$screen_width":1920,"$lib":"web","$lib_version":"1.96.1",`+
		`"$referrer":"https://search.example/","$session_id":"0190a5a2-7b3c-7000-8000-0000000000aa","price":12.50,"member":true}}`, n%1000, n)
}

func batchBody(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"api_key":"phc_benchmark_key_0123456789","batch":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(eventBody(i))
	}
	b.WriteString(`],"sent_at":"2024-05-01T10:00:00Z"}`)
	return b.Bytes()
}

// BenchmarkReadEnvelope is what the accept path does with a body: one pass.
func BenchmarkReadEnvelope(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			body := batchBody(n)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ingestion.ReadEnvelope(body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

// BenchmarkDecode is what every reader of the journal does with a record.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			env, err := ingestion.ReadEnvelope(batchBody(n))
			if err != nil {
				b.Fatal(err)
			}
			rec := ingestion.Record{ReceivedAt: arrival, ProjectID: 1, ClientIP: netip.MustParseAddr("192.0.2.7"), SentAt: env.SentAt, Items: env.Items}
			dec := ingestion.NewDecoder(ingestion.DefaultLimits())
			var out ingestion.Decoded
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
