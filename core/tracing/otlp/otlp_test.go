package otlp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/tracing/otlp"
)

// An endpoint that refuses each export with a large text fills no log.
func TestFailedExportsAreLoggedBriefly(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
	}))
	defer endpoint.Close()
	core, logged := observer.New(zap.WarnLevel)
	cfg := tracing.Config{URL: endpoint.URL + "/v1/traces", Sample: 1}
	tr, err := otlp.New(cfg, "test", zap.New(core), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 { // four exports
		_, span := tr.StartRequest(t.Context(), http.MethodPost, "/i/v0/e/", nil, nil)
		span.End(nil)
	}
	tr.Shutdown(t.Context())
	if all := logged.All(); len(all) != 1 || len(fmt.Sprint(all[0].ContextMap())) > 600 {
		t.Errorf("%d entries; the first has %d bytes", len(all), len(fmt.Sprint(all)))
	}
}
