//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The tests of destinations deliver capturedEvents events to real software, kill it and
// the plugin with SIGKILL in the middle, and read with a tool of that software what has
// arrived.
const (
	capturedEvents = 2000
	batchEvents    = 50
	persons        = 97
	// Every notifiedEvery-th event fits the action of the tests of notifiers.
	notifiedEvery = 40
)

// destination is the instance of a sink or notifier, and the software behind it.
type destination struct {
	plugin string // name of the instance
	// kill ends the software and start starts it again. They are nil where the
	// destination is a directory, to which the process of the plugin writes.
	kill, start func()
	progress
}

// progress tells how far a delivery is. Each function returns nil when it is there.
type progress struct {
	begun  func() error
	failed func(since time.Time) error // an attempt has failed since, or waits
	done   func() error                // the destination has confirmed every event that was captured
}

// behind is the destination of the sink.
func (p *software) behind(t *testing.T, s *server, sink string) destination {
	return destination{sink, func() { p.kill(t) }, func() { p.start(t) }, s.sinkProgress(t, sink)}
}

// pluginStatus is what the server reports of an instance.
type pluginStatus struct {
	PID      int
	State    string
	Restarts int
	Delivery struct { // of a sink
		State        string
		LastError    string    `json:"last_error"`
		LastErrorAt  time.Time `json:"last_error_at"`
		Delivered    uint64
		DeadLetters  uint64 `json:"dead_letters"`
		InFlight     int    `json:"in_flight"`
		StagedEvents int    `json:"staged_events"`
		LagRecords   int64  `json:"lag_records"`
	}
}

// plugin returns the status of the instance.
func (s *server) plugin(t *testing.T, name string) (found pluginStatus) {
	t.Helper()
	operators := *s
	operators.url = "http://" + s.admin
	operators.do(t, http.MethodGet, "/api/plugins/"+name+"/", nil, &found, http.StatusOK)
	return found
}

// instanceYAML is an instance for startWith.
func instanceYAML(name, kind, use, config string) string {
	indented := "        " + strings.ReplaceAll(strings.TrimSpace(config), "\n", "\n        ")
	return fmt.Sprintf("    - name: %s\n      kind: %s\n      use: %s\n      config:\n%s\n", name, kind, use, indented)
}

// sinkYAML is a sink for startWith. Its pauses between two attempts are short.
func sinkYAML(name, use, config string) string {
	return instanceYAML(name, "sink", use, config) + "      delivery:\n        retry: {initial: 100ms, max: 2s}\n"
}

// sinkProgress is the progress of the sink.
func (s *server) sinkProgress(t *testing.T, sink string) progress {
	until := func(reached func(pluginStatus) bool) func() error {
		return func() error {
			status := s.plugin(t, sink)
			if status.Delivery.DeadLetters > 0 {
				t.Fatalf("dead letters: %+v", status)
			}
			if !reached(status) {
				return fmt.Errorf("%+v", status)
			}
			return nil
		}
	}
	return progress{
		begun: until(func(s pluginStatus) bool { return s.Delivery.Delivered > 0 || s.Delivery.StagedEvents > 0 }),
		failed: func(since time.Time) error {
			return until(func(s pluginStatus) bool { return s.Delivery.LastErrorAt.After(since) || s.Delivery.InFlight > 0 })()
		},
		done: until(func(s pluginStatus) bool {
			d := s.Delivery
			return d.LagRecords == 0 && d.InFlight == 0 && d.StagedEvents == 0 && d.Delivered >= capturedEvents
		}),
	}
}

// deliver captures capturedEvents events. Meanwhile it kills the process of the plugin,
// kills the destination, and starts the destination again. It returns when every event
// is confirmed, with the events as lines of JSON by uuid, as the server has stored them.
func deliver(t *testing.T, s *server, d destination) map[string]string {
	t.Helper()
	c := capturing{server: s, sent: map[string]bool{}}
	c.capture(t, capturedEvents*2/5)
	eventually(t, time.Minute, d.plugin+" delivers", d.begun)
	c.killPlugin(t, d.plugin, capturedEvents*3/5)
	if d.kill == nil {
		c.killPlugin(t, d.plugin, capturedEvents*4/5)
	} else {
		c.captureWhile(t, capturedEvents*4/5, d.kill)
		killed := time.Now()
		eventually(t, time.Minute, d.plugin+" waits for the destination", func() error { return d.failed(killed) })
		d.start()
	}
	c.capture(t, capturedEvents)
	eventually(t, 2*time.Minute, "the destination of "+d.plugin+" has confirmed every event", d.done)
	return s.storedLines(t, c.sent)
}

// capturing captures events and keeps their uuids.
type capturing struct {
	*server
	sent map[string]bool
}

// capture captures events until there are as many.
func (c *capturing) capture(t *testing.T, through int) {
	t.Helper()
	for len(c.sent) < through {
		c.captureBatch(t, c.sent)
	}
}

// captureWhile is capture beside a kill. It returns when both are done.
func (c *capturing) captureWhile(t *testing.T, through int, kill func()) {
	t.Helper()
	killed := make(chan struct{})
	go func() { kill(); close(killed) }()
	c.capture(t, through)
	<-killed
}

// killPlugin kills the process of the instance beside capture, and returns when the
// server has started another.
func (c *capturing) killPlugin(t *testing.T, name string, through int) {
	t.Helper()
	var before pluginStatus
	eventually(t, time.Minute, name+" has a process", func() error {
		if before = c.plugin(t, name); before.PID == 0 {
			return fmt.Errorf("%+v", before)
		}
		return nil
	})
	c.captureWhile(t, through, func() { _ = syscall.Kill(before.PID, syscall.SIGKILL) })
	eventually(t, time.Minute, name+" has another process", func() error {
		if now := c.plugin(t, name); now.Restarts <= before.Restarts || now.PID == 0 || now.PID == before.PID {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
}

// captureBatch captures batchEvents events and adds their uuids.
func (s *server) captureBatch(t *testing.T, sent map[string]bool) {
	t.Helper()
	var events []map[string]any
	for range batchEvents {
		id := uuid.NewString()
		name := "paid"
		if len(sent)%notifiedEvery == 0 {
			name = "signed up"
		}
		events = append(events, map[string]any{
			"event": name, "uuid": id, "distinct_id": fmt.Sprint("person ", len(sent)%persons),
			"properties": json.RawMessage(fmt.Sprintf(`{"n":%d,"price":12.50,"large":12345678901234567890,"text":"grün \"q\" \\ \n\t☃","list":[1,"a",null],"nested":{"deep":{"yes":true}},"smtp":"\r\n.\r\nQUIT\r\nSubject: other"}`, len(sent))),
		})
		sent[id] = true
	}
	body, err := json.Marshal(map[string]any{"api_key": s.project, "batch": events})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.status(http.MethodPost, "/batch/", bytes.NewReader(body), http.StatusOK); err != nil {
		t.Fatal(err)
	}
}

// storedLines waits until the file sink of the server has all events, and returns its
// lines by uuid.
func (s *server) storedLines(t *testing.T, sent map[string]bool) (lines map[string]string) {
	t.Helper()
	eventually(t, time.Minute, "the file sink has every event", func() error {
		text, err := os.ReadFile(s.lines)
		if err != nil {
			return err
		}
		lines = map[string]string{}
		for line := range strings.Lines(string(text)) {
			if e, complete := parseLine(line); complete {
				lines[e.UUID] = strings.TrimSuffix(line, "\n")
			}
		}
		if len(lines) != len(sent) {
			return fmt.Errorf("%d of %d", len(lines), len(sent))
		}
		return nil
	})
	for id := range sent {
		if lines[id] == "" {
			t.Fatalf("event %s is not in the file", id)
		}
	}
	return lines
}

// parseLine parses a line of a file that is still being written.
func parseLine(line string) (e rawEvent, complete bool) {
	return e, strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &e) == nil
}
