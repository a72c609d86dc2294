package main_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanReceiver is an OTLP endpoint over HTTP that keeps the spans.
type spanReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	raw   strings.Builder // every body
}

func newSpanReceiver(t *testing.T) *spanReceiver {
	t.Helper()
	r := &spanReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var in collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &in); err != nil {
			t.Errorf("%s: %v", req.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(body)
		for _, resource := range in.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// named returns the spans of a trace by name. A later span replaces an earlier one.
func (r *spanReceiver) named(traceID string) map[string]*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		if hex.EncodeToString(s.GetTraceId()) == traceID {
			out[s.GetName()] = s
		}
	}
	return out
}

func TestTraceLeadsFromRequestToSinkAndNotifier(t *testing.T) {
	t.Parallel()
	const traceID, clientSpan, distinctID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "ada-lovelace-1815"
	receiver := newSpanReceiver(t)
	var mu sync.Mutex
	parents := map[string]string{} // the traceparent that each destination received
	destination := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		parents[r.URL.Path] = r.Header.Get("Traceparent")
	}))
	t.Cleanup(destination.Close)
	s := newServer(t)
	yaml := fmt.Sprintf("traces: {url: %q, sample: 0}\nplugins:\n  instances:\n", receiver.URL+"/v1/traces") +
		fmt.Sprintf("    - name: hook\n      kind: sink\n      use: webhook\n      config: {url: %q, allow_networks: [127.0.0.0/8]}\n", destination.URL+"/sink") +
		notifier("chat", destination.URL+"/notifier")
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.managementRequest(t, http.MethodPost, "/api/projects/1/actions/", `{"name":"signed up","post_to_slack":true,"steps":[{"event":"signed up"}]}`)

	body := fmt.Sprintf(`{"api_key":%q,"event":"signed up","distinct_id":%q}`, s.project, distinctID)
	if code, err := s.post("/capture/", strings.Replace(body, "signed up", "opened", 1)); err != nil || code != http.StatusOK {
		t.Fatal(code, err) // not traced
	}
	req, err := http.NewRequest(http.MethodPost, s.url+"/capture/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", "00-"+traceID+"-"+clientSpan+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	_ = res.Body.Close()

	parent := map[string]string{
		"journal append": "POST /capture", "process events": "POST /capture", "persons": "process events", "events": "process events",
		"follow events": "POST /capture", "deliver events": "POST /capture", "plugin write_batch": "deliver events",
		"guidon.sink.v1.SinkService/WriteBatch": "plugin write_batch", "send notification": "POST /capture", "plugin notify": "send notification",
		"guidon.notify.v1.NotifierService/Notify": "plugin notify",
	}
	until(t, func() string {
		spans := receiver.named(traceID)
		for child, parent := range parent {
			switch {
			case spans[child] == nil || spans[parent] == nil:
				return fmt.Sprintf("no span %s below %s among %q", child, parent, slices.Sorted(maps.Keys(spans)))
			case string(spans[child].GetParentSpanId()) != string(spans[parent].GetSpanId()):
				return fmt.Sprintf("%s is not below %s", child, parent)
			}
		}
		if got := hex.EncodeToString(spans["POST /capture"].GetParentSpanId()); got != clientSpan {
			return "the span of the request is below " + got
		}
		mu.Lock()
		defer mu.Unlock()
		for _, path := range []string{"/sink", "/notifier"} {
			if !strings.HasPrefix(parents[path], "00-"+traceID) {
				return path + " received traceparent " + parents[path]
			}
		}
		return ""
	})
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	for _, private := range []string{s.project, s.personal, distinctID} {
		if strings.Contains(receiver.raw.String(), private) {
			t.Errorf("a span contains %s", private)
		}
	}
	for _, span := range receiver.spans {
		if span.GetName() == "POST /capture" && hex.EncodeToString(span.GetTraceId()) != traceID {
			t.Error("the request without a traceparent is traced")
		}
	}
}
