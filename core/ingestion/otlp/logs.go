package otlp

import (
	"strings"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
)

// addLogs adds an event $log for each record.
func (b *batch) addLogs(req *collector.ExportLogsServiceRequest) {
	for _, resource := range req.GetResourceLogs() {
		shared := properties{}
		shared.addAttributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				p := b.from(shared)
				if p == nil {
					return
				}
				p.addAttributes(record.GetAttributes())
				p.set("$scope_name", scope.GetScope().GetName())
				b.addLog(record, p)
			}
		}
	}
}

func (b *batch) addLog(record *logs.LogRecord, p properties) {
	if body := plain(record.GetBody()); body != nil {
		p["$log_message"] = body
	}
	p["$log_level"] = level(record.GetSeverityText(), int(record.GetSeverityNumber()))
	if n := record.GetSeverityNumber(); n != 0 {
		p["$log_severity_number"] = int(n)
	}
	trace := traceID(record.GetTraceId())
	p.set("$trace_id", trace)
	p.set("$span_id", spanID(record.GetSpanId()))
	p.set("$log_event_name", record.GetEventName())
	p.set("$session_id", p.first("$session_id", "session.id", "sessionId"))
	nanos := record.GetTimeUnixNano()
	if nanos == 0 {
		nanos = record.GetObservedTimeUnixNano()
	}
	b.add("$log", p, nanos, trace, "")
}

// level returns the level of a log record in lower case: that of its text, or the
// one of its number.
func level(text string, number int) string {
	if text != "" {
		return strings.ToLower(text)
	}
	names := [...]string{"trace", "debug", "info", "warn", "error", "fatal"}
	if number < 1 || number > 24 {
		return "info"
	}
	return names[(number-1)/4]
}
