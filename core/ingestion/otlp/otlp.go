// Package otlp takes OpenTelemetry logs, spans and metrics in, and keeps them as
// events.
//
// Exporters of OpenTelemetry and client libraries post to /i/v1/logs, /i/v1/traces,
// /i/v1/metrics and, for spans of language models, /i/v0/ai/otel, with a project key
// as bearer token or in the query. Bodies are OTLP over HTTP, protobuf or JSON, also
// compressed. A log record becomes an event $log, a span $otel_span, a data point
// $otel_metric. A span of a language model becomes $ai_generation, $ai_embedding,
// $ai_span or $ai_trace by the semantic conventions of GenAI. /i/v1/logs/datadog
// takes the logs of Datadog's agents.
//
// Attributes become properties with their names: those of the resource, then those
// of the record, which win. The uuid of an event derives from its content, so that
// an export that is repeated is stored once. The distinct id is that of the
// attributes; without one it derives from the session, the trace or the service,
// and the event makes no person.
//
// The number of messages in a body is counted before any is built, and their memory
// is taken from the budget of the server. Answers have the form of OTLP: an event
// that cannot be kept is reported in partial_success, and the rest is accepted.
package otlp
