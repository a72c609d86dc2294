//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver verifies requests with the Python package standardwebhooks and keeps them.
type receiver struct {
	*software
	url, file string
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	python, dir, address := install(t, "destinations-python"), t.TempDir(), freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{url: "http://" + address + "/in", file: filepath.Join(dir, "requests.ndjson")}
	task := fmt.Sprintf(`{"port": %s, "secret": %q, "file": %q}`, port, webhookSecret, r.file)
	r.software = launch(t, &software{
		name: "receiver", dir: dir, ready: listening(address),
		command: []string{filepath.Join(python, "venv", "bin", "python"), filepath.Join(python, "receiver.py"), task},
	})
	return r
}

// request is a verified request. A receiver that knows its id leaves it out.
type request struct {
	ID, Body, Error string
	Compressed      bool
}

// requests returns the requests without repetitions. A request that is repeated has
// the same body.
func (r *receiver) requests(t *testing.T) (all []request) {
	t.Helper()
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil
	}
	bodies, repeated := map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			continue // the receiver was killed
		}
		var one request
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if one.Error != "" {
			t.Fatalf("request %s cannot be verified: %s", one.ID, one.Error)
		}
		if before, ok := bodies[one.ID]; ok {
			repeated++
			if before != one.Body {
				t.Errorf("request %s was repeated with another body", one.ID)
			}
			continue
		}
		bodies[one.ID] = one.Body
		all = append(all, one)
	}
	t.Logf("%d requests, %d repetitions", len(all), repeated)
	return all
}

// TestDestinationWebhook verifies the requests of the webhook sink with a library of
// Standard Webhooks. After repeated requests are left out, each event is there once.
func TestDestinationWebhook(t *testing.T) {
	longTest(t)
	t.Parallel()
	for name, settings := range map[string]string{
		"plain":      "format: ndjson",
		"compressed": "format: json\ngzip: true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReceiver(t)
			s := startWith(t, sinkYAML("posted", "webhook", fmt.Sprintf("url: %q\nsecret: %s\nallow_hosts: [127.0.0.1]\nmax_events: %d\n%s", r.url, webhookSecret, batchEvents, settings)))
			want := deliver(t, s, r.behind(t, s, "posted"))
			arrived := arrivals{}
			for _, one := range r.requests(t) {
				if one.Compressed != (name == "compressed") {
					t.Errorf("compressed: %t", one.Compressed)
				}
				lines := postedEvents(t, one)
				if len(lines) > batchEvents {
					t.Errorf("request %s has %d events", one.ID, len(lines))
				}
				for _, line := range lines {
					e, _ := parseLine(line + "\n")
					arrived.checkLine(t, want, e.UUID, line)
				}
			}
			arrived.checkOnce(t, want)
		})
	}
}

// postedEvents are the events of a request as JSON.
func postedEvents(t *testing.T, r request) (lines []string) {
	t.Helper()
	if !r.Compressed {
		return strings.Split(strings.TrimSuffix(r.Body, "\n"), "\n")
	}
	var body struct {
		Type string
		Data []json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil || body.Type != "events" {
		t.Fatalf("%v: %s", err, r.Body)
	}
	for _, e := range body.Data {
		lines = append(lines, string(e))
	}
	return lines
}
