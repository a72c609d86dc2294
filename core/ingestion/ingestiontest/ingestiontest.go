// Package ingestiontest holds what the tests of the ingestion packages share:
// records, request bodies and a decoder with the default limits.
package ingestiontest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
)

// Arrival is when the records of Record arrive.
var Arrival = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)

// Record returns a record of project 1 with the given items.
func Record(items string) event.Record {
	return event.Record{ReceivedAt: Arrival, ProjectID: 1, RequestID: [16]byte{1, 2, 3}, Items: []byte(items)}
}

// Decode decodes a record with the default limits.
func Decode(rec event.Record) *event.Decoded {
	var out event.Decoded
	event.NewDecoder(event.DefaultLimits()).Decode(&rec, &out)
	return &out
}

// Kinds lists the kinds of the notices of a decoded record, separated by
// spaces. Those of dropped events have a minus in front.
func Kinds(d *event.Decoded) string {
	var out []string
	for _, n := range d.Notices {
		if n.Dropped {
			out = append(out, "-"+n.Kind)
			continue
		}
		out = append(out, n.Kind)
	}
	return strings.Join(out, " ")
}

// EventBody returns event n as a browser sends it, about 600 bytes.
func EventBody(n int) []byte {
	return fmt.Appendf(nil, `{"event":"$pageview","distinct_id":"0190a5a2-7b3c-7000-8000-%012d","timestamp":"2024-05-01T09:59:58.123Z",`+
		`"uuid":"0190a5a2-7b3c-7000-8000-%012d","properties":{"$os":"Linux","$browser":"Chrome","$browser_version":120,`+
		`"$device_type":"Desktop","$current_url":"https://shop.example/products/17?ref=\"mail\"","$host":"shop.example",`+
		`"$pathname":"/products/17","$screen_height":1080,"$screen_width":1920,"$lib":"web","$lib_version":"1.96.1",`+
		`"$referrer":"https://search.example/","$session_id":"0190a5a2-7b3c-7000-8000-0000000000aa","price":12.50,"member":true}}`, n%1000, n)
}

// BatchBody returns a request with n events of EventBody.
func BatchBody(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"api_key":"phc_benchmark_key_0123456789","batch":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(EventBody(i))
	}
	b.WriteString(`],"sent_at":"2024-05-01T10:00:00Z"}`)
	return b.Bytes()
}
