package lifecycle_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
)

// constant returns a random source that returns x.
func constant(x float64) func() float64 { return func() float64 { return x } }

// exitsUntilQuarantine lets an instance end until it is quarantined. It returns the
// delays before and the duration of the quarantine.
func exitsUntilQuarantine(t *testing.T, r *lifecycle.Restarts, now *time.Time) (delays []time.Duration, quarantine time.Duration) {
	t.Helper()
	for range 100 {
		delay, quarantined := r.Next(*now, 0, constant(1))
		if quarantined {
			return delays, delay
		}
		delays = append(delays, delay)
		*now = now.Add(delay + 10*time.Millisecond)
	}
	t.Fatal("never quarantined")
	return nil, 0
}

func TestRestartDelaysGrowToTheirMaximumBeforeQuarantine(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	r := &lifecycle.Restarts{Settings: cfg}
	now := time.Now()
	delays, quarantine := exitsUntilQuarantine(t, r, &now)
	if delays[0] != 0 || delays[1] != cfg.Initial || delays[2] != 2*cfg.Initial || delays[len(delays)-1] != cfg.Max {
		t.Errorf("delays %s", delays)
	}
	if quarantine != cfg.QuarantineFor {
		t.Errorf("quarantine %s", quarantine)
	}
	few := cfg
	few.QuarantineExits = 2
	now = now.Add(time.Hour)
	if delays, _ := exitsUntilQuarantine(t, &lifecycle.Restarts{Settings: few}, &now); delays[len(delays)-1] != cfg.Max {
		t.Errorf("quarantined after %s", delays)
	}

	r = &lifecycle.Restarts{Settings: cfg}
	for i := range 40 { // every three minutes: no quarantine, at most a minute of delay
		now = now.Add(3 * time.Minute)
		if got, quarantine := r.Next(now, time.Minute, constant(1)); got > cfg.Max || quarantine {
			t.Errorf("exit %d: %s, %t", i+1, got, quarantine)
		}
	}
	if got, _ := r.Next(now.Add(time.Hour), cfg.ResetAfter, constant(1)); got != 0 {
		t.Errorf("after ResetAfter: %s", got)
	}
	if got, _ := r.Next(now.Add(time.Hour), 0, constant(0)); got != cfg.Initial/2 {
		t.Errorf("without jitter: %s", got)
	}
}

func TestQuarantineDoublesUntilForgiven(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	r := &lifecycle.Restarts{Settings: cfg}
	now := time.Now()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 32} {
		if _, got := exitsUntilQuarantine(t, r, &now); got != want*cfg.QuarantineFor {
			t.Errorf("quarantine %d lasts %s", i+1, got)
		}
	}
	r.Forgive()
	if _, got := exitsUntilQuarantine(t, r, &now); got != cfg.QuarantineFor {
		t.Errorf("after progress it lasts %s", got)
	}
}

func TestProgressForgivesExits(t *testing.T) {
	t.Parallel()
	r := &lifecycle.Restarts{Settings: settings.Default().Restart}
	now := time.Now()
	for i := range 200 {
		now = now.Add(time.Second)
		delay, quarantine := r.Next(now, 0, constant(1))
		if quarantine || i%4 == 3 && delay < r.Settings.Initial {
			t.Fatalf("exit %d: %s, %t", i+1, delay, quarantine)
		}
		if i%4 == 3 {
			r.Forgive()
		}
	}
}

func TestClockJumpsDoNotChangeRestartDelays(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	for name, jump := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := &lifecycle.Restarts{Settings: cfg}
			now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // a wall clock only
			for range cfg.QuarantineExits - 1 {
				now = now.Add(time.Second)
				r.Next(now, 0, constant(1))
			}
			delay, quarantine := r.Next(now.Add(jump), 0, constant(1))
			if quarantine || delay > cfg.Max {
				t.Errorf("waits %s, quarantine %t", delay, quarantine)
			}
		})
	}
}
