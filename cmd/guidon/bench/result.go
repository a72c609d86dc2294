package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// Milliseconds is a duration in milliseconds, with the precision of microseconds.
type Milliseconds float64

// String returns the number with its unit.
func (m Milliseconds) String() string { return fmt.Sprintf("%.3g ms", float64(m)) }

func milliseconds(d time.Duration) Milliseconds {
	return Milliseconds(float64(d.Microseconds()) / 1000)
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// Result is what was measured. Requests of the warmup do not count.
type Result struct {
	Path        string         `json:"path"`
	Connections int            `json:"connections"`
	Rate        float64        `json:"rate_per_second"` // asked for; 0: a closed loop
	Seconds     float64        `json:"seconds"`
	Requests    int64          `json:"requests"` // answered with 200
	PerSecond   float64        `json:"requests_per_second"`
	Failed      int64          `json:"failed"`
	Errors      map[string]int `json:"errors,omitempty"` // failed requests by status or cause
	P50         Milliseconds   `json:"p50_ms"`
	P90         Milliseconds   `json:"p90_ms"`
	P99         Milliseconds   `json:"p99_ms"`
	P999        Milliseconds   `json:"p999_ms"`
	Max         Milliseconds   `json:"max_ms"`

	// Of the process of --pid.
	CPUPerRequest float64 `json:"cpu_us_per_request,omitempty"` // microseconds
	Memory        int64   `json:"resident_bytes,omitempty"`     // at the end
	MemoryMax     int64   `json:"resident_bytes_max,omitempty"` // since its start
}

// value returns the result as a JSON value.
func (r *Result) value() (any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var v any
	err = output.Decode(text, &v)
	return v, err
}

func (r *Result) rows() [][]any {
	loop := "as fast as the connections allow"
	if r.Rate > 0 {
		loop = fmt.Sprintf("%g requests/s, latency from the time due", r.Rate)
	}
	rows := [][]any{
		{"load", fmt.Sprintf("%s, %d connections, %s", r.Path, r.Connections, loop)},
		{"requests", fmt.Sprintf("%d in %.1f s, %.0f/s", r.Requests, r.Seconds, r.PerSecond)},
		{"failed", r.Failed},
	}
	for _, cause := range slices.Sorted(maps.Keys(r.Errors)) {
		rows = append(rows, []any{"failed: " + cause, r.Errors[cause]})
	}
	rows = append(rows,
		[]any{"p50", r.P50}, []any{"p90", r.P90}, []any{"p99", r.P99}, []any{"p99.9", r.P999}, []any{"max", r.Max})
	if r.Memory > 0 {
		rows = append(rows,
			[]any{"CPU of a request", fmt.Sprintf("%.1f µs", r.CPUPerRequest)},
			[]any{"resident memory", fmt.Sprintf("%.1f MiB, at most %.1f MiB", float64(r.Memory)/(1<<20), float64(r.MemoryMax)/(1<<20))})
	}
	return rows
}
