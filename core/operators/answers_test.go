package operators_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// Plugins that come, go or change their data are reported, once each, and again after
// an error.
func TestChangedAnswersAreReported(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	h.WatchAnswersQuickly()
	var failing atomic.Bool
	reports := make(chan error, 1000)
	h.OnAnswers(func(context.Context) error {
		if failing.Load() {
			reports <- errors.New("the database is away")
			return errors.New("the database is away")
		}
		reports <- nil
		return nil
	})
	h.start(t)
	next := func(what string, want bool) {
		t.Helper()
		for {
			select {
			case err := <-reports:
				if (err == nil) == want {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s was not reported", what)
			}
		}
	}
	f.set(func() { f.data = "2" })
	next("a new version of the data", true)
	f.set(func() { f.away = true })
	next("a plugin that is away", true)
	failing.Store(true)
	f.set(func() { f.away = false })
	next("a plugin that is back, with an error", false)
	failing.Store(false)
	next("a plugin that is back", true)
	f.set(func() { f.version++ })
	next("a new opening", true)
	select {
	case <-reports:
		t.Error("a report without a change")
	case <-time.After(300 * time.Millisecond):
	}
}
