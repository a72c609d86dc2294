package retry

import (
	"testing"
	"time"
)

func TestUntilAligned(t *testing.T) {
	const d = 100 * time.Millisecond
	for now, want := range map[time.Duration]time.Duration{
		0: d, time.Millisecond: 99 * time.Millisecond, 50 * time.Millisecond: 50 * time.Millisecond,
		51 * time.Millisecond: 149 * time.Millisecond, 99 * time.Millisecond: 101 * time.Millisecond, 10 * d: d,
	} {
		if got := untilAligned(now, d); got != want {
			t.Errorf("%s after the begin: %s, want %s", now, got, want)
		}
	}
	if got := untilAligned(time.Second, 0); got != 0 {
		t.Errorf("without an interval: %s", got)
	}
}

// Loops of the same interval wake together, whenever they began.
func TestAlignedLoopsMeet(t *testing.T) {
	const d = 250 * time.Millisecond
	for _, begun := range []time.Duration{0, 3 * time.Millisecond, 127 * time.Millisecond, 249 * time.Millisecond} {
		if at := begun + untilAligned(begun, d); at%d != 0 {
			t.Errorf("begun at %s: wakes at %s", begun, at)
		}
	}
}
