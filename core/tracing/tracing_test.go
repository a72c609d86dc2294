package tracing_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/tracing"
)

const (
	sampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// kept keeps the exported spans after the shutdown, which clears an InMemoryExporter.
type kept struct{ spans tracetest.SpanStubs }

func (k *kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (k *kept) Shutdown(context.Context) error { return nil }

// record runs fn and returns the spans that it recorded.
func record(t *testing.T, cfg tracing.Config, fn func(tr *tracing.Tracing)) tracetest.SpanStubs {
	t.Helper()
	k := &kept{}
	tr := tracing.New(cfg, "test", k, nil)
	fn(tr)
	tr.Shutdown(t.Context())
	return k.spans
}

func request(tr *tracing.Tracing, traceparent string) (context.Context, *tracing.Span) {
	return tr.StartRequest(tr.Untraced(context.Background()), "POST", "/capture", []byte(traceparent), nil)
}

func TestWhichRequestsAreTraced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sample       float64
		clients      int
		traceparent  string
		first, later bool // later: a second request at once
	}{
		"sampled by the server":           {1, 0, "", true, true},
		"not sampled":                     {0, 5, "", false, false},
		"sampled by the client":           {0, 5, sampled, true, true},
		"not sampled by the client":       {1, 5, unsampled, false, false},
		"beyond the bound of clients":     {0, 1, sampled, true, false},
		"clients have no say":             {0, 0, sampled, false, false},
		"by the client and by the server": {1, 0, sampled, true, true},
		"an invalid header":               {0, 5, "00-xyz", false, false},
		"an invalid header, sampled":      {1, 5, "00-xyz", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record(t, tracing.Config{Sample: c.sample, ClientTraces: c.clients}, func(tr *tracing.Tracing) {
				for i, want := range []bool{c.first, c.later} {
					ctx, span := request(tr, c.traceparent)
					if got := span != nil; got != want {
						t.Errorf("request %d: traced %v", i, got)
					}
					if got := tracing.OriginOf(ctx) != (tracing.Origin{}); got != want {
						t.Errorf("request %d: an origin: %v", i, got)
					}
					span.EndRequest(200, "", "id", 1)
				}
			})
		})
	}
}

func TestRequestSpanHasStatusAndProject(t *testing.T) {
	t.Parallel()
	spans := record(t, tracing.Config{ClientTraces: 5}, func(tr *tracing.Tracing) {
		ctx, span := request(tr, sampled)
		_, child := tracing.Child(ctx, "inner")
		child.End(fault.New(fault.Unavailable, "journal_full", "secret text"))
		span.EndRequest(503, "journal_full", "abc", 42)
	})
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	got := map[string]string{}
	for _, a := range spans[1].Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	for name, want := range map[string]string{
		"http.request.method": "POST", "http.route": "/capture", "http.response.status_code": "503",
		"guidon.project_id": "42", "guidon.request_id": "abc", "error.type": "journal_full",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() || spans[0].Status.Description != "journal_full" {
		t.Errorf("child: %+v", spans[0].Status)
	}
	if spans[1].SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || spans[1].Parent.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("not below the span of the client: %v", spans[1].Parent)
	}
}

func TestBatchOfOneRequestIsItsChildOthersHaveLinks(t *testing.T) {
	t.Parallel()
	origins := make([]tracing.Origin, tracing.MaxLinks+2)
	for i := range origins {
		origins[i] = tracing.Origin{0: 1, 1: byte(i), 23: 1}
	}
	for name, c := range map[string]struct {
		origins []tracing.Origin
		child   bool
		links   int
		count   string
	}{
		"one":        {origins[:1], true, 0, "1"},
		"one, twice": {[]tracing.Origin{origins[0], origins[0], {}}, true, 0, "1"},
		"two":        {origins[:2], false, 2, "2"},
		"too many":   {origins, false, tracing.MaxLinks, "130"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans := record(t, tracing.Config{}, func(tr *tracing.Tracing) {
				ctx, span := tr.StartBatch(t.Context(), "deliver events", c.origins)
				_, child := tracing.Child(ctx, "inner")
				child.End(errors.New("x"))
				span.EndWith("")
			})
			if len(spans) != 2 || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() {
				t.Fatalf("spans %+v", spans)
			}
			span := spans[1]
			if got := span.Parent.IsValid(); got != c.child || len(span.Links) != c.links {
				t.Errorf("child %v, %d links", got, len(span.Links))
			}
			if c.child && span.SpanContext.TraceID() != origins[0].SpanContext().TraceID() {
				t.Error("the child is in another trace")
			}
			if got := span.Attributes[0].Value.String(); got != c.count {
				t.Errorf("%s requests", got)
			}
		})
	}
}

func TestBatchWithoutTracedRequestsIsNotRecorded(t *testing.T) {
	t.Parallel()
	spans := record(t, tracing.Config{Sample: 1}, func(tr *tracing.Tracing) {
		ctx, span := tr.StartBatch(t.Context(), "deliver events", []tracing.Origin{{}})
		span.Int("x", 1)
		span.EndWith("failed")
		_, call := tr.Provider().Tracer("plugins").Start(ctx, "plugin write_batch")
		call.End()
	})
	if len(spans) != 0 {
		t.Errorf("spans %+v", spans)
	}
}

func TestOffCostsNothing(t *testing.T) {
	var off *tracing.Tracing
	ctx := t.Context()
	one := tracing.New(tracing.Config{}, "test", &kept{}, nil)
	base := one.Untraced(ctx)
	for name, fn := range map[string]func(){
		"off": func() {
			c, span := off.StartRequest(ctx, "POST", "/capture", nil, nil)
			_, child := tracing.Child(c, "journal append")
			child.End(nil)
			_, batch := off.StartBatch(ctx, "x", nil)
			batch.EndWith("")
			span.EndRequest(200, "", "", 1)
		},
		"not sampled": func() {
			c, span := one.StartRequest(base, "POST", "/capture", nil, nil)
			_, child := tracing.Child(c, "journal append")
			child.End(nil)
			span.EndRequest(200, "", "", 1)
		},
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if off.Provider() != nil {
		t.Error("a provider without tracing")
	}
}

// away is an endpoint that does not answer until it is released.
type away struct{ release chan struct{} }

func (a away) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	select {
	case <-a.release:
	case <-ctx.Done():
	}
	return errors.New("away")
}

func (a away) Shutdown(context.Context) error { return nil }

func TestEndpointThatIsAwayNeverBlocks(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	endpoint := away{make(chan struct{})}
	tr := tracing.New(tracing.Config{Sample: 1}, "test", endpoint, reg)
	const spans = 3 * 4096
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range spans {
			_, span := request(tr, "")
			span.EndRequest(200, "", "", 1)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("spans wait for the endpoint")
	}
	close(endpoint.release)
	tr.Shutdown(t.Context())
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if want := map[string]float64{"dropped": spans - 4096, "exported": 0, "failed": 4096}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOriginAsText(t *testing.T) {
	t.Parallel()
	o := tracing.Origin{1, 23: 2}
	if got := tracing.ParseOrigin(o.String()); got != o {
		t.Errorf("got %v", got)
	}
	for _, s := range []string{"", "00", strings.Repeat("x", 48), o.String() + "00"} {
		if got := tracing.ParseOrigin(s); got != (tracing.Origin{}) || (tracing.Origin{}).String() != "" {
			t.Errorf("%q: %v", s, got)
		}
	}
	ctx := tracing.WithOrigins(t.Context(), map[string]tracing.Origin{"u": o})
	if tracing.OriginOfEvent(ctx, "u") != o || tracing.OriginOfEvent(ctx, "v") != (tracing.Origin{}) {
		t.Error("origins of events are lost")
	}
}

func TestWrongURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://user:secret@localhost:4318/v1/traces", "localhost:4318", "ftp://localhost/", "http:///v1"} {
		if err := (tracing.Config{URL: url}).Validate(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
