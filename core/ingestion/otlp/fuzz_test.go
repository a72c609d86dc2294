package otlp

import (
	"encoding/json"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"github.com/guidonhq/guidon/core/web/body"
)

// check fails unless the batch is a JSON array of as many events as it counts.
func check(t *testing.T, b *batch) {
	t.Helper()
	var out []item
	if err := json.Unmarshal(b.items(), &out); err != nil || len(out) != b.count {
		t.Fatalf("%v, %d of %d: %s", err, len(out), b.count, b.out)
	}
}

func FuzzExport(f *testing.F) {
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}`), true)
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","attributes":[{"key":"gen_ai.system","value":{"stringValue":"x"}}]}]}]}]}`), true)
	f.Add([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{"asDouble":"NaN"}]}}]}]}]}`), true)
	f.Add([]byte("\x0a\x02\x12\x00"), false)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		limits := body.Limits{Depth: 100}
		b := newBatch(1<<20, body.Limits{InflatedBytes: 25 << 20})
		l, s, m := new(logs.ExportLogsServiceRequest), new(trace.ExportTraceServiceRequest), new(metrics.ExportMetricsServiceRequest)
		if decode(data, isJSON, l, limits) == nil {
			b.addLogs(l)
		}
		if decode(data, isJSON, s, limits) == nil {
			b.addSpans(s, true)
			b.addSpans(s, false)
		}
		if decode(data, isJSON, m, limits) == nil {
			b.addMetrics(m)
		}
		check(t, b)
	})
}

func FuzzDatadog(f *testing.F) {
	f.Add([]byte(`[{"message":"a","ddtags":"a:b,c","timestamp":"1714550400000"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBatch(1<<20, body.Limits{InflatedBytes: 25 << 20})
		if b.addDatadog(data, map[string]string{"service": "x"}, body.Limits{Depth: 100}) == nil {
			check(t, b)
		}
	})
}
