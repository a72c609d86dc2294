package status

import (
	"errors"
	"testing"
	"time"
)

func TestDeliveryStats(t *testing.T) {
	t.Parallel()
	var s Tracker
	s.SetState("idle")
	since := s.since
	s.SetState("idle")
	if s.since != since {
		t.Error("since moves though the state is the same")
	}
	s.AddDelivered(3)
	s.AddFiltered(2)
	s.AddDeadLetter()
	s.SetInFlight(4)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.SetStaged(5, 60, at)
	s.SetFailed("retrying", errors.New("no route\x00"))
	got := s.Status("one")
	if got.Sink != "one" || got.State != "retrying" || got.Delivered != 3 || got.Filtered != 2 || got.DeadLetters != 1 || got.InFlight != 4 ||
		got.StagedEvents != 5 || got.StagedBytes != 60 || !got.StagedSince.Equal(at) || got.LastError != "no route\ufffd" || got.LastErrorAt == nil {
		t.Errorf("status %+v", got)
	}
	if !got.Blocked() {
		t.Error("a sink that retries is blocked")
	}
	s.SetStaged(0, 0, time.Time{})
	if got := s.Status("one"); got.StagedSince != nil {
		t.Errorf("nothing is staged since %v", got.StagedSince)
	}
}

func TestDeliveryKeepsTheStateOfAFailureUntilASuccess(t *testing.T) {
	t.Parallel()
	var s Tracker
	s.SetFailed("retrying", errors.New("refused"))
	s.SetState("delivering") // the next attempt
	if got := s.Status("one").State; got != "retrying" {
		t.Errorf("while it tries again: %s", got)
	}
	s.SetState("waiting") // for the plugin
	s.SetState("delivering")
	if got := s.Status("one").State; got != "retrying" {
		t.Errorf("after it waited: %s", got)
	}
	s.AddDelivered(1)
	if got := s.Status("one").State; got != "delivering" {
		t.Errorf("after a success: %s", got)
	}
	s.SetFailed("retrying", errors.New("refused"))
	s.SetFailed("delivering", errors.New("a dead letter"))
	s.SetState("delivering")
	if got := s.Status("one").State; got != "delivering" {
		t.Errorf("after a dead letter: %s", got)
	}
}
