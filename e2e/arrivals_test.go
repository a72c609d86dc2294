//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
)

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

// checkRows is checkRow for lines of JSON with the columns of a table.
func (a arrivals) checkRows(t *testing.T, want map[string]string, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var row struct {
			UUID, Event, Properties string
			DistinctID              string `json:"distinct_id"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		a.checkRow(t, want, rawEvent{row.UUID, row.Event, row.DistinctID, json.RawMessage(row.Properties)})
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
