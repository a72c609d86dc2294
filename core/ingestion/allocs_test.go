package ingestion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web/envelope"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

// Capture and decoding keep properties as bytes: the allocations do not grow with
// their number.
func TestPropertiesCostNoAllocations(t *testing.T) {
	const many = 2000
	body := func(properties int) []byte {
		var b strings.Builder
		for i := range properties {
			fmt.Fprintf(&b, `,"p%d":{"a":[%d,"x\n",true],"b":null}`, i, i)
		}
		return []byte(`{"api_key":"phc_x","event":"a","distinct_id":"u","properties":{"x":1` + b.String() + `}}`)
	}
	count := func(properties int) (accept, decode float64) {
		body := body(properties)
		accept = testing.AllocsPerRun(20, func() {
			if _, err := envelope.Read(body); err != nil {
				t.Fatal(err)
			}
		})
		rec := ingestiontest.Record(string(body))
		dec := event.NewDecoder(event.DefaultLimits())
		var out event.Decoded
		decode = testing.AllocsPerRun(20, func() {
			out.Reset()
			dec.Decode(&rec, &out)
		})
		if len(out.Events) != 1 {
			t.Fatalf("%d properties: %+v", properties, out.Notices)
		}
		return accept, decode
	}
	accept, decode := count(many)
	if accept > many/100 || decode > many/100 { // a handful, whatever the race detector adds
		t.Errorf("%d properties cost %.0f allocations when they are accepted and %.0f when they are decoded", many, accept, decode)
	}
}
