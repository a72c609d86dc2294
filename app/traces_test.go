package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/app"
)

func TestTracesOfPluginCallsAreExported(t *testing.T) {
	t.Parallel()
	var received atomic.Bool
	collector := http.NewServeMux()
	collector.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("plugin write_batch")) && bytes.Contains(body, []byte("guidon.sink.v1.SinkService/WriteBatch")) {
			received.Store(true)
		}
	})
	url := listen(t, collector)
	s := serve(t, func(c *app.Config) { c.Traces.URL = url + "/v1/traces" })
	res, err := http.Post(s.URL+"/capture/", "application/json", strings.NewReader(fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"d"}`, s.ProjectKey)))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	s.until(t, "the collector receives the span of a batch", received.Load)
}

func TestTracesConfigErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"traces: {url: \"localhost:4318\"}": "http or https",
		"traces: {sample: 2}":               "from 0 to 1",
		"traces: {sample: .nan}":            "finite",
		"traces: {client_traces: -1}":       "client_traces",
	} {
		if _, err := app.Load(file(t, text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
