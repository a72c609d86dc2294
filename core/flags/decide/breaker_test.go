package decide

import (
	"testing"
	"time"
)

// at returns a time some seconds after the start of a test.
func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestBreakerOpensAtARateOfFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failed, ok int
		seconds    float64 // between two lookups
		open       bool
	}{
		"five in a row":            {failed: 5, open: false},
		"19 of 19":                 {failed: 19, open: false},
		"20 of 20":                 {failed: 20, open: true},
		"half":                     {failed: 20, ok: 20, open: true},
		"a third":                  {failed: 20, ok: 40, open: false},
		"20 of 20, one per second": {failed: 20, seconds: 1, open: false},
	} {
		var b breaker
		now := 0.0
		fail := func() { b.recordFailure(at(now), time.Second); now += c.seconds }
		fail()
		for range c.ok {
			b.recordSuccess(at(now))
		}
		for range c.failed - 1 {
			fail()
		}
		if b.isOpen() != c.open {
			t.Errorf("%s: open is %t", name, b.isOpen())
		}
	}
}

func TestBreakerHalfOpen(t *testing.T) {
	t.Parallel()
	var b breaker
	for range breakerSample {
		if !b.allow(at(0)) {
			t.Fatal("refused while it is closed")
		}
		b.recordFailure(at(0), time.Second)
	}
	if b.allow(at(0.5)) {
		t.Error("allowed while it is open")
	}
	if !b.allow(at(1)) || b.allow(at(1)) {
		t.Error("half-open, one lookup is allowed")
	}
	b.recordFailure(at(1), time.Second)
	if b.allow(at(1.5)) {
		t.Error("allowed after a failed probe")
	}
	if !b.allow(at(2)) {
		t.Error("refused after the second pause")
	}
	b.recordCanceled()
	if !b.allow(at(2)) {
		t.Error("refused after a canceled probe")
	}
	b.recordSuccess(at(2))
	if b.isOpen() || !b.allow(at(2)) || !b.allow(at(2)) {
		t.Error("not closed after a success")
	}
}
