//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The tests of destinations deliver capturedEvents events to real software, kill it
// with SIGKILL in the middle, and read with a tool of that software what has arrived.
const (
	capturedEvents = 2000
	batchEvents    = 50
	persons        = 97
)

// destination is the instance of a sink, and the software behind it.
type destination struct {
	sink        string // name of the instance
	kill, start func()
}

// behind is the destination of the sink.
func (p *software) behind(t *testing.T, sink string) destination {
	return destination{sink, func() { p.kill(t) }, func() { p.start(t) }}
}

// sinkStatus is what the server reports of a sink.
type sinkStatus struct {
	PID      int
	State    string
	Restarts int
	Delivery struct {
		State        string
		LastError    string `json:"last_error"`
		Delivered    uint64
		DeadLetters  uint64 `json:"dead_letters"`
		InFlight     int    `json:"in_flight"`
		StagedEvents int    `json:"staged_events"`
		LagRecords   int64  `json:"lag_records"`
	}
}

// sink returns the status of the instance.
func (s *server) sink(t *testing.T, name string) (found sinkStatus) {
	t.Helper()
	operators := *s
	operators.url = "http://" + s.admin
	var page struct {
		Results []json.RawMessage
	}
	operators.do(t, http.MethodGet, "/api/plugins", nil, &page, http.StatusOK)
	for _, result := range page.Results {
		var named struct{ Name string }
		if err := json.Unmarshal(result, &named); err != nil {
			t.Fatal(err)
		}
		if named.Name != name {
			continue
		}
		if err := json.Unmarshal(result, &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Fatalf("no instance %s", name)
	return found
}

// sinkYAML is an instance for startWith. Its pauses between two attempts are short.
func sinkYAML(name, use, config string) string {
	indented := "        " + strings.ReplaceAll(strings.TrimSpace(config), "\n", "\n        ")
	return fmt.Sprintf("    - name: %s\n      kind: sink\n      use: %s\n      config:\n%s\n      delivery:\n        retry: {initial: 100ms, max: 2s}\n", name, use, indented)
}

// deliver captures capturedEvents events while the destination is killed and started
// again, and waits until the sink has confirmed every one. It returns the events as
// lines of JSON by uuid, as the server has stored them.
func deliver(t *testing.T, s *server, d destination) map[string]string {
	t.Helper()
	sent := map[string]bool{}
	capture := func(through int) {
		for len(sent) < through {
			s.captureBatch(t, sent)
		}
	}
	capture(capturedEvents * 2 / 5)
	eventually(t, time.Minute, "the sink delivers", func() error {
		if status := s.sink(t, d.sink).Delivery; status.Delivered == 0 && status.StagedEvents == 0 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	done := make(chan struct{})
	go func() { d.kill(); close(done) }() // while the sink writes
	capture(capturedEvents / 2)
	<-done
	capture(capturedEvents * 3 / 5)
	eventually(t, time.Minute, "the sink waits for the destination", func() error {
		if status := s.sink(t, d.sink); status.Restarts == 0 && status.Delivery.LastError == "" && status.Delivery.InFlight == 0 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	d.start()
	capture(capturedEvents)
	eventually(t, 2*time.Minute, "the sink has confirmed every event", func() error {
		status := s.sink(t, d.sink)
		if status.Delivery.DeadLetters > 0 {
			t.Fatalf("dead letters: %+v", status)
		}
		if d := status.Delivery; d.LagRecords > 0 || d.InFlight > 0 || d.StagedEvents > 0 || d.Delivered < capturedEvents {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	return s.storedLines(t, sent)
}

// captureBatch captures batchEvents events and adds their uuids.
func (s *server) captureBatch(t *testing.T, sent map[string]bool) {
	t.Helper()
	var events []map[string]any
	for range batchEvents {
		id := uuid.NewString()
		events = append(events, map[string]any{
			"event": "paid", "uuid": id, "distinct_id": fmt.Sprint("person ", len(sent)%persons),
			"properties": json.RawMessage(fmt.Sprintf(`{"n":%d,"price":12.50,"large":12345678901234567890,"text":"grün \"q\" \\ \n\t☃","list":[1,"a",null],"nested":{"deep":{"yes":true}}}`, len(sent))),
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

// rawEvent is an event whose properties have the digits of their numbers.
type rawEvent struct {
	UUID       string          `json:"uuid"`
	Event      string          `json:"event"`
	DistinctID string          `json:"distinct_id"`
	Properties json.RawMessage `json:"properties"`
}

// arrivals counts what was read from a destination, by uuid.
type arrivals map[string]int

// checkLine compares a line that has arrived with the stored one, byte by byte.
func (a arrivals) checkLine(t *testing.T, want map[string]string, id, line string) {
	t.Helper()
	a[id]++
	if want[id] != line {
		t.Fatalf("event %s:\ngot  %s\nwant %s", id, line, want[id])
	}
}

// checkRow compares the columns of an event that has arrived with the stored line.
// Numbers of its properties are equal as numbers.
func (a arrivals) checkRow(t *testing.T, want map[string]string, row rawEvent) {
	t.Helper()
	a[row.UUID]++
	var stored rawEvent
	if err := json.Unmarshal([]byte(want[row.UUID]), &stored); err != nil {
		t.Fatalf("event %s was not captured: %v", row.UUID, err)
	}
	if row.Event != stored.Event || row.DistinctID != stored.DistinctID || !sameJSON(t, row.Properties, stored.Properties) {
		t.Fatalf("event %s:\ngot  %+v %s\nwant %+v %s", row.UUID, row, row.Properties, stored, stored.Properties)
	}
}

// checkOnce fails the test unless every captured event has arrived exactly once.
func (a arrivals) checkOnce(t *testing.T, want map[string]string) {
	t.Helper()
	if repeated := a.checkComplete(t, want); repeated > 0 {
		t.Errorf("%d events arrived more than once", repeated)
	}
}

// checkComplete fails the test unless every captured event has arrived. It returns the
// number of events that arrived more than once.
func (a arrivals) checkComplete(t *testing.T, want map[string]string) (repeated int) {
	t.Helper()
	lost := 0
	for id := range want {
		if a[id] == 0 {
			lost++
		}
		if a[id] > 1 {
			repeated++
		}
	}
	if lost > 0 || len(a) != len(want) {
		t.Errorf("%d events are lost, %d arrived, %d were captured", lost, len(a), len(want))
	}
	t.Logf("%d events arrived, %d more than once", len(a), repeated)
	return repeated
}

// checkOrder fails the test unless the events of each person have arrived in the order
// of their capture. Repetitions do not count.
func checkOrder(t *testing.T, want map[string]string, order []string) {
	t.Helper()
	seen, last := map[string]bool{}, map[string]int{}
	for _, id := range order {
		if seen[id] {
			continue
		}
		seen[id] = true
		var e struct {
			DistinctID string `json:"distinct_id"`
			Properties struct{ N int }
		}
		if err := json.Unmarshal([]byte(want[id]), &e); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[e.DistinctID]; ok && before > e.Properties.N {
			t.Errorf("%s: event %d arrived after event %d", e.DistinctID, e.Properties.N, before)
		}
		last[e.DistinctID] = e.Properties.N
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(exactJSON(t, a), exactJSON(t, b))
}

// exactJSON decodes JSON with its numbers as fractions.
func exactJSON(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return exactNumbers(value)
}

func exactNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		number, ok := new(big.Rat).SetString(value.String())
		if !ok {
			return value
		}
		return number.RatString()
	case []any:
		for i := range value {
			value[i] = exactNumbers(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = exactNumbers(value[key])
		}
	}
	return value
}
