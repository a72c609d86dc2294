package otlp

import (
	"errors"
	"strings"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/guidonhq/guidon/core/web/body"
)

// Attributes of a resource are repeated in each record, and fields of a query in each
// log. A small request with a large attribute and many records is refused before it
// takes memory, also if its events are too large to be kept.
func TestRepeatedAttributesAreBounded(t *testing.T) {
	t.Parallel()
	const records = 400_000
	limits := body.Limits{InflatedBytes: 1 << 20, Depth: 100}
	for name, size := range map[string]int{"kept": 10_000, "too large": 60_000} {
		shared := &resource.Resource{Attributes: []*common.KeyValue{text("large", strings.Repeat("x", size))}}
		wide := &resource.Resource{}
		for range 2_000 {
			wide.Attributes = append(wide.Attributes, text(strings.Repeat("k", len(wide.Attributes)%50)+string(rune(1000+len(wide.Attributes))), "v"))
		}
		for kind, add := range map[string]func(*batch, *resource.Resource){
			"logs": func(b *batch, r *resource.Resource) {
				list := make([]*logs.LogRecord, records)
				b.addLogs(&collectorlogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{Resource: r, ScopeLogs: []*logs.ScopeLogs{{LogRecords: list}}}}})
			},
			"spans": func(b *batch, r *resource.Resource) {
				list := make([]*trace.Span, records)
				b.addSpans(&collectortraces.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{Resource: r, ScopeSpans: []*trace.ScopeSpans{{Spans: list}}}}}, true)
			},
			"metrics": func(b *batch, r *resource.Resource) {
				list := make([]*metrics.Metric, records)
				b.addMetrics(&collectormetrics.ExportMetricsServiceRequest{ResourceMetrics: []*metrics.ResourceMetrics{{Resource: r, ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: list}}}}})
			},
			"points": func(b *batch, r *resource.Resource) {
				list := make([]*metrics.NumberDataPoint, records)
				m := &metrics.Metric{Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: list}}}
				b.addMetrics(&collectormetrics.ExportMetricsServiceRequest{ResourceMetrics: []*metrics.ResourceMetrics{{Resource: r, ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: []*metrics.Metric{m}}}}}})
			},
			"logs of Datadog": func(b *batch, _ *resource.Resource) {
				_ = b.addDatadog([]byte("["+strings.Repeat("{},", 50_000)+"{}]"), map[string]string{"large": strings.Repeat("x", size)}, limits)
			},
		} {
			for _, r := range []*resource.Resource{shared, wide} {
				b := newBatch(50_000, limits)
				add(b, r)
				if kind == "metrics" && r == shared {
					continue // metrics without points are not written
				}
				if !errors.Is(b.err, errTooMany) || len(b.out) > 4<<20 || b.work > 16<<20 {
					t.Errorf("%s, %s: %v, %d bytes, %d of work", kind, name, b.err, len(b.out), b.work)
				}
			}
		}
	}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}
