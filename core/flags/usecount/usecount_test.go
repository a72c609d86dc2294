package usecount

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// values returns the series of the project 1.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}

func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c, err := New(2, reg)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	c.now = func() time.Time { return now }
	count := func(key string, n int) {
		for range n {
			c.Project(1).Count(key)
		}
	}
	check := func(want map[string]float64) {
		t.Helper()
		if got := values(t, reg); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	count("a", 5)
	count("b", 3)
	count("c", 1)
	check(map[string]float64{"a": 5, "b": 3, Other: 1})
	count("c", 10)
	count("a", 1)
	check(map[string]float64{"a": 6, "b": 3, Other: 11})
	now = now.Add(2 * time.Hour) // b is not evaluated any more
	count("a", 1)
	count("c", 1)
	check(map[string]float64{"a": 7, "c": 1, Other: 11})
	check(map[string]float64{"a": 7, "c": 1, Other: 11})
}

func TestOff(t *testing.T) {
	t.Parallel()
	if c, err := New(0, prometheus.NewRegistry()); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
}

func BenchmarkCount(b *testing.B) {
	c, err := New(10, prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Project(1).Count("flag")
	}
}
