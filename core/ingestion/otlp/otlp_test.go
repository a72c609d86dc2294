package otlp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
	logscol "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracecol "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/otlp"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// memory keeps batches.
type memory struct {
	mu    sync.Mutex
	items []byte
	count int
}

func (m *memory) Keep(_ *fiber.Ctx, _ auth.Project, b capture.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items, m.count = bytes.Clone(b.Items), b.Count
	return nil
}

type kept struct {
	Event      string
	DistinctID string `json:"distinct_id"`
	UUID       string
	Timestamp  string
	Properties map[string]any
}

func (m *memory) events(t *testing.T) (out []kept) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := json.Unmarshal(m.items, &out); err != nil || len(out) != m.count {
		t.Fatalf("%v, %d events: %s", err, m.count, m.items)
	}
	return out
}

func serve(t *testing.T, limit int) (*memory, string) {
	t.Helper()
	m := &memory{}
	return m, webtest.Serve(t, webtest.DefaultKeys(), otlp.NewHTTP(m, limit))
}

func post(t *testing.T, url, contentType string, body []byte, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(out), res.Header
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func zipped(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw)
	_ = w.Close()
	return b.Bytes()
}

const (
	bearer   = "Bearer phc_test"
	protobuf = "application/x-protobuf"
	traceHex = "0102030405060708090a0b0c0d0e0f10"
	spanHex  = "0102030405060708"
)

func TestLogsBecomeEvents(t *testing.T) {
	t.Parallel()
	const jsonLog = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeLogs":[{"logRecords":[
		{"timeUnixNano":"1714550400123000000","severityNumber":17,"body":{"stringValue":"no stock"},"traceId":"` + traceHex + `","spanId":"` + spanHex + `",
		 "attributes":[{"key":"posthogDistinctId","value":{"stringValue":"ada"}},{"key":"n","value":{"intValue":"7"}}]}]}]}]}`
	id := bytes.NewReader([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	traceID := make([]byte, 16)
	_, _ = id.Read(traceID)
	message := encoded(t, &logscol.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{
		TimeUnixNano: 1714550400123000000, SeverityNumber: 17, Body: text("", "no stock").Value, TraceId: traceID, SpanId: traceID[:8],
		Attributes: []*common.KeyValue{text("posthogDistinctId", "ada")},
	}}}}}}})
	for name, c := range map[string]struct {
		kind   string
		body   []byte
		header []string
		query  string
	}{
		"protobuf":               {protobuf, message, []string{"Authorization", bearer}, ""},
		"protobuf, gzip":         {protobuf, zipped(message), []string{"Authorization", bearer, "Content-Encoding", "gzip"}, ""},
		"JSON":                   {"application/json", []byte(jsonLog), []string{"Authorization", bearer}, ""},
		"JSON, key in the query": {"application/json", []byte(jsonLog), nil, "?token=phc_test"},
		"JSON of a browser":      {"text/plain", zipped([]byte(jsonLog)), nil, "?token=phc_test&compression=gzip-js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, base := serve(t, 1<<20)
			status, answer, header := post(t, base+"/i/v1/logs"+c.query, c.kind, c.body, c.header...)
			if want := map[bool]string{true: "", false: "{}"}[c.kind == protobuf]; status != 200 || answer != want {
				t.Fatalf("%d %q %v", status, answer, header)
			}
			e := m.events(t)[0]
			if e.Event != "$log" || e.DistinctID != "ada" || e.Timestamp != "2024-05-01T08:00:00.123Z" || e.Properties["$log_message"] != "no stock" ||
				e.Properties["$log_level"] != "error" || e.Properties["$trace_id"] != traceHex || e.Properties["$span_id"] != spanHex {
				t.Errorf("%+v", e)
			}
			post(t, base+"/i/v1/logs"+c.query, c.kind, c.body, c.header...)
			if again := m.events(t)[0]; again.UUID != e.UUID {
				t.Error("a repeated export has another uuid")
			}
		})
	}
}

func TestSpansBecomeEvents(t *testing.T) {
	t.Parallel()
	span := &trace.Span{
		TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{8}, 8), Name: "GET /", Kind: trace.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: 1714550400000000000, EndTimeUnixNano: 1714550400250000000, Status: &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: "broken"},
	}
	request := &tracecol.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{span}}}}}}
	m, base := serve(t, 1<<20)
	if status, answer, _ := post(t, base+"/i/v1/traces", protobuf, encoded(t, request), "Authorization", bearer); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	e := m.events(t)[0]
	if e.Event != "$otel_span" || e.Properties["$span_duration_ms"] != 250.0 || e.Properties["$span_status"] != "error" ||
		e.Properties["$span_kind"] != "server" || e.Properties["$process_person_profile"] != false {
		t.Errorf("%+v", e)
	}
}

func TestSpansOfLanguageModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attributes []*common.KeyValue
		parent     bool
		event      string
		want       map[string]any
	}{
		"a chat": {[]*common.KeyValue{
			text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", "m-1"), text("gen_ai.response.model", "m-1-2026"), text("gen_ai.system", "acme"),
			text("gen_ai.input.messages", `[{"role":"user","content":"hi"}]`), text("gen_ai.system_instructions", "be kind"), text("user.id", "ada"),
		}, true, "$ai_generation", map[string]any{"$ai_model": "m-1-2026", "$ai_provider": "acme", "$ai_latency": 0.25, "$ai_input": []any{
			map[string]any{"role": "system", "content": "be kind"}, map[string]any{"role": "user", "content": "hi"},
		}}},
		"an embedding":       {[]*common.KeyValue{text("gen_ai.operation.name", "embeddings")}, true, "$ai_embedding", nil},
		"a tool":             {[]*common.KeyValue{text("gen_ai.operation.name", "execute_tool")}, true, "$ai_span", nil},
		"the first span":     {[]*common.KeyValue{text("gen_ai.operation.name", "invoke_agent")}, false, "$ai_trace", nil},
		"of OpenLLMetry":     {[]*common.KeyValue{text("llm.request.type", "completion")}, true, "$ai_generation", nil},
		"of the Vercel SDK":  {[]*common.KeyValue{text("ai.operationId", "ai.streamText.doStream"), text("ai.model.id", "m")}, true, "$ai_generation", map[string]any{"$ai_model": "m"}},
		"no language model":  {[]*common.KeyValue{text("http.method", "GET")}, true, "$otel_span", nil},
		"with an id of ours": {[]*common.KeyValue{text("gen_ai.operation.name", "chat"), text("posthog.distinct_id", "ada")}, true, "$ai_generation", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			span := &trace.Span{TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{8}, 8), Attributes: c.attributes,
				StartTimeUnixNano: 1714550400000000000, EndTimeUnixNano: 1714550400250000000}
			if c.parent {
				span.ParentSpanId = bytes.Repeat([]byte{9}, 8)
			}
			request := &tracecol.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{span}}}}}}
			m, base := serve(t, 1<<20)
			if status, answer, _ := post(t, base+"/i/v0/ai/otel", protobuf, encoded(t, request), "Authorization", bearer); status != 200 {
				t.Fatalf("%d %s", status, answer)
			}
			e := m.events(t)[0]
			if e.Event != c.event || c.event != "$otel_span" && e.Properties["$ai_trace_id"] != strings.Repeat("07", 16) {
				t.Errorf("%+v", e)
			}
			for property, want := range c.want {
				got, _ := json.Marshal(e.Properties[property])
				expected, _ := json.Marshal(want)
				if !bytes.Equal(got, expected) {
					t.Errorf("%s is %s, want %s", property, got, expected)
				}
			}
			if strings.Contains(name, "chat") && e.DistinctID != "ada" {
				t.Errorf("the distinct id is %q", e.DistinctID)
			}
		})
	}
}

func TestMetricsBecomeEvents(t *testing.T) {
	t.Parallel()
	const body = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
		{"name":"orders","unit":"1","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{"asInt":"3","timeUnixNano":"1714550400000000000"}]}},
		{"name":"heat","gauge":{"dataPoints":[{"asDouble":1.5},{"asDouble":"NaN"}]}},
		{"name":"wait","histogram":{"dataPoints":[{"count":"2","sum":3,"bucketCounts":["1","1"],"explicitBounds":[1]}]}},
		{"name":"old","summary":{"dataPoints":[{"count":"2","sum":3,"quantileValues":[{"quantile":0.5,"value":1}]}]}}]}]}]}`
	m, base := serve(t, 1<<20)
	if status, answer, _ := post(t, base+"/i/v1/metrics", "application/json", []byte(body), "Authorization", bearer); status != 200 || answer != "{}" {
		t.Fatalf("%d %s", status, answer)
	}
	events := m.events(t)
	if len(events) != 5 || events[0].Properties["$metric_value"] != 3.0 || events[0].Properties["$metric_temporality"] != "cumulative" ||
		events[1].Properties["$metric_value"] != 1.5 || events[2].Properties["$metric_value"] != "NaN" || events[3].Properties["$metric_count"] != 2.0 {
		t.Errorf("%+v", events)
	}
}

func TestLogsOfDatadog(t *testing.T) {
	t.Parallel()
	m, base := serve(t, 1<<20)
	const body = `[{"message":"a","status":"warning","service":"shop","ddtags":"env:prod,beta","timestamp":1714550400000,"extra":{"n":1}},{"message":"b","timestamp":"2024-05-01T08:00:00Z"}]`
	for path, header := range map[string][]string{"/i/v1/logs/datadog/phc_test?ddsource=nginx": nil, "/i/v1/logs/datadog": {"DD-API-KEY", "phc_test"}, "/i/v1/logs/datadog?token=phc_test": nil} {
		if status, answer, _ := post(t, base+path, "application/json", []byte(body), header...); status != 200 || answer != "{}" {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		events := m.events(t)
		p := events[0].Properties
		if len(events) != 2 || p["$log_message"] != "a" || p["$log_level"] != "warn" || p["service.name"] != "shop" || p["env"] != "prod" || p["beta"] != true ||
			events[0].Timestamp != "2024-05-01T08:00:00Z" || events[1].Timestamp != events[0].Timestamp {
			t.Errorf("%s: %+v", path, events)
		}
		if strings.Contains(path, "ddsource") != (p["ddsource"] == "nginx") {
			t.Errorf("%s: ddsource is %v", path, p["ddsource"])
		}
	}
}

// Exporters read a Status, and repeat only what may succeed later.
func TestRefusals(t *testing.T) {
	t.Parallel()
	m, base := serve(t, 400)
	for name, c := range map[string]struct {
		path, kind, body string
		header           []string
		status           int
		want             string
	}{
		"no key":            {"/i/v1/logs", "application/json", `{}`, nil, 401, "invalid_api_key"},
		"an unknown key":    {"/i/v1/logs", "application/json", `{}`, []string{"Authorization", "Bearer phc_nope"}, 401, "invalid_api_key"},
		"protobuf, no key":  {"/i/v1/logs", protobuf, ``, nil, 401, "invalid_api_key"},
		"no JSON":           {"/i/v1/traces", "application/json", `{"resourceSpans":7}`, []string{"Authorization", bearer}, 400, "invalid_payload"},
		"no protobuf":       {"/i/v1/metrics", protobuf, "\x0a\xff\xff", []string{"Authorization", bearer}, 400, "invalid_payload"},
		"many messages":     {"/i/v1/logs", protobuf, strings.Repeat("\x0a\x00", 600_000), []string{"Authorization", bearer}, 413, "too_many_values"},
		"deep messages":     {"/i/v1/logs", "application/json", strings.Repeat(`{"resourceLogs":[`, 200), []string{"Authorization", bearer}, 400, "invalid_payload"},
		"a log of Datadog":  {"/i/v1/logs/datadog/phc_test", "application/json", `"text"`, nil, 400, "invalid_payload"},
		"an empty export":   {"/i/v1/logs", "application/json", `{}`, []string{"Authorization", bearer}, 200, "{}"},
		"an oversized item": {"/i/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + strings.Repeat("x", 400) + `"}}]}]}]}`, []string{"Authorization", bearer}, 200, `"rejectedLogRecords":"1"`},
	} {
		status, answer, header := post(t, base+c.path, c.kind, []byte(c.body), c.header...)
		if status != c.status || !strings.Contains(strings.ReplaceAll(answer, " ", ""), c.want) {
			t.Errorf("%s: %d %q, want %d %s", name, status, answer, c.status, c.want)
		}
		if c.kind == protobuf && header.Get("Content-Type") != protobuf {
			t.Errorf("%s: %s", name, header.Get("Content-Type"))
		}
	}
	_ = m
}
