//go:build e2e

package nats_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/guidonhq/guidon/plugins/sink/nats"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

type realBroker struct{ *server.Server }

// broker starts a real server with its files in dir.
func broker(t *testing.T, dir string, o brokerOptions) realBroker {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: cmp.Or(o.port, server.RANDOM_PORT), Authorization: o.token, MaxPayload: int32(o.maxPayload),
		JetStream: !o.noStreams, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	b := realBroker{s}
	t.Cleanup(b.Stop)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not come up")
	}
	return b
}

// URL is the address for clients.
func (b realBroker) URL() string { return b.ClientURL() }

// Stop stops the server. Stopping twice does nothing.
func (b realBroker) Stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// TestMain lets the test binary be the plugin.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "nats" {
		sdk.Serve(nats.Plugin())
		return
	}
	os.Exit(m.Run())
}

// The conformance tests of all bundled plugins have no real server (plugins/conformance_test.go).
func TestConformsWithARealServer(t *testing.T) {
	t.Parallel()
	url := broker(t, t.TempDir(), brokerOptions{maxPayload: 2 << 20}).URL()
	plugintest.Run(t, plugintest.Target{
		Command: []string{os.Args[0], "nats"}, Events: 2000,
		Config:  map[string]any{"servers": []any{url}, "stream": "GUIDON_EVENTS", "subject": "kept.{project}", "create": true},
		Refused: json.RawMessage(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`),
		Received: func() (events []sdk.Event, err error) {
			messages, err := readStream(t.Context(), url)
			for _, m := range messages {
				var ev sdk.Event
				if err := json.Unmarshal(m.Data, &ev); err != nil {
					return nil, err
				}
				events = append(events, ev)
			}
			return events, err
		},
	})
}
