package lifecycle_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
)

// constant returns a random source that returns x.
func constant(x float64) func() float64 { return func() float64 { return x } }

func TestRestartDelaysGrowUntilQuarantine(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	b := &lifecycle.Restarts{Settings: cfg}
	now := time.Now()
	for i, want := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		now = now.Add(time.Second)
		if got, quarantine := b.Next(now, 0, constant(1)); got != want || quarantine {
			t.Errorf("exit %d: %s, %t", i+1, got, quarantine)
		}
	}
	if _, quarantine := b.Next(now, 0, constant(1)); !quarantine {
		t.Error("the sixth exit is no quarantine")
	}

	b = &lifecycle.Restarts{Settings: cfg}
	for i := range 40 { // every three minutes: no quarantine, at most a minute of delay
		now = now.Add(3 * time.Minute)
		if got, quarantine := b.Next(now, time.Minute, constant(1)); got > cfg.Max || quarantine {
			t.Errorf("exit %d: %s, %t", i+1, got, quarantine)
		}
	}
	if got, _ := b.Next(now.Add(time.Hour), cfg.ResetAfter, constant(1)); got != 0 {
		t.Errorf("after ResetAfter: %s", got)
	}
	if got, _ := b.Next(now.Add(time.Hour), 0, constant(0.5)); got != 125*time.Millisecond {
		t.Errorf("half of the jitter: %s", got)
	}
}

func TestClockJumpsDoNotChangeRestartDelays(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	for name, jump := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := &lifecycle.Restarts{Settings: cfg}
			now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // a wall clock only
			for range cfg.QuarantineExits - 1 {
				now = now.Add(time.Second)
				b.Next(now, 0, constant(1))
			}
			delay, quarantine := b.Next(now.Add(jump), 0, constant(1))
			if quarantine || delay > cfg.Max {
				t.Errorf("waits %s, quarantine %t", delay, quarantine)
			}
		})
	}
}
