package otlp

import (
	"strings"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// maxSpanEvents bounds the events of a span that are kept in its property.
const maxSpanEvents = 128

// addSpans adds an event for each span. With ai, those of language models become AI
// events.
func (b *batch) addSpans(req *collector.ExportTraceServiceRequest, ai bool) {
	for _, resource := range req.GetResourceSpans() {
		shared := properties{}
		shared.addAttributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				p := b.from(shared)
				if p == nil {
					return
				}
				p.addAttributes(span.GetAttributes())
				if s := scope.GetScope(); s.GetVersion() != "" && p["$lib_version"] == nil {
					p["$lib_version"] = s.GetVersion()
				}
				name := "$otel_span"
				if ai && isAI(span) {
					name = p.toAI(span)
				} else {
					p.set("$scope_name", scope.GetScope().GetName())
					p.addSpan(span)
				}
				b.addSpan(name, p, span)
			}
		}
	}
}

func (b *batch) addSpan(name string, p properties, span *trace.Span) {
	id, own := traceID(span.GetTraceId()), spanID(span.GetSpanId())
	key := ""
	if id != "" && own != "" {
		key = id + own
	}
	b.add(name, p, span.GetStartTimeUnixNano(), id, key)
}

// addSpan sets the properties of a span that is no AI event.
func (p properties) addSpan(span *trace.Span) {
	p.set("$trace_id", traceID(span.GetTraceId()))
	p.set("$span_id", spanID(span.GetSpanId()))
	p.set("$parent_span_id", spanID(span.GetParentSpanId()))
	p.set("$span_name", span.GetName())
	p.set("$span_kind", enumName(span.GetKind().String(), "SPAN_KIND_"))
	p.set("$span_status", enumName(span.GetStatus().GetCode().String(), "STATUS_CODE_"))
	p.set("$span_status_message", span.GetStatus().GetMessage())
	if start, end := span.GetStartTimeUnixNano(), span.GetEndTimeUnixNano(); end > start {
		p["$span_duration_ms"] = float64(end-start) / 1e6
	}
	events := span.GetEvents()
	if len(events) == 0 {
		return
	}
	list := make([]any, 0, min(len(events), maxSpanEvents))
	for _, e := range events[:min(len(events), maxSpanEvents)] {
		attributes := properties{}
		attributes.addAttributes(e.GetAttributes())
		list = append(list, properties{"name": e.GetName(), "time_unix_nano": e.GetTimeUnixNano(), "attributes": attributes})
	}
	p["$span_events"] = list
	if len(events) > maxSpanEvents {
		p["$span_events_dropped"] = len(events) - maxSpanEvents
	}
}

// enumName returns the name of a value in lower case, "" for UNSPECIFIED and UNSET.
func enumName(text, prefix string) string {
	name := strings.ToLower(strings.TrimPrefix(text, prefix))
	if name == "unspecified" || name == "unset" {
		return ""
	}
	return name
}
