package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/host"
)

func TestTraceContinuesInPlugin(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	trace := filepath.Join(t.TempDir(), "trace")
	core, logs := observer.New(zapcore.DebugLevel)
	h, err := host.New(config(instance("p", "probe", map[string]any{"trace": trace})), host.Deps{
		DataDir: t.TempDir(), Bundled: bundled, Log: zap.New(core), Traces: provider,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Stop(context.Background()) })
	r := &run{Host: h, logs: logs}
	s := r.sink(t)
	ctx, root := provider.Tracer("test").Start(t.Context(), "whatever wants to write")
	if _, err := s.Write(ctx, batch("ok-1", 0, 1)); err != nil {
		t.Fatal(err)
	}
	root.End()

	id := root.SpanContext().TraceID().String()
	text, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(text), "parent 00-"+id+"-") {
		t.Errorf("the plugin did not receive trace %s: %s, %v", id, text, err)
	}
	var names []string
	for _, span := range spans.GetSpans() {
		if strings.Contains(span.Name, "Health") {
			t.Error("health checks are traced")
		}
		if span.SpanContext.TraceID().String() != id {
			continue
		}
		names = append(names, span.Name)
		if span.Name == "plugin write_batch" {
			attributes := map[string]string{}
			for _, a := range span.Attributes {
				attributes[string(a.Key)] = a.Value.AsString()
			}
			if attributes["guidon.instance"] != "p" || attributes["guidon.outcome"] != "committed" {
				t.Errorf("attributes %v", attributes)
			}
		}
	}
	if got := strings.Join(names, ", "); got != "guidon.sink.v1.SinkService/WriteBatch, plugin write_batch, whatever wants to write" {
		t.Errorf("spans: %s", got)
	}
	eventually(t, func() string {
		for _, entry := range logs.FilterMessage("traced").All() {
			if entry.ContextMap()["trace_id"] == id {
				return ""
			}
		}
		return "no line of the plugin's names the trace"
	})
}
