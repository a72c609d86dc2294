package delivery

import (
	"errors"
	"testing"
	"time"
)

func TestDeliveryStats(t *testing.T) {
	t.Parallel()
	var s deliveryStats
	s.setState("idle")
	since := s.since
	s.setState("idle")
	if s.since != since {
		t.Error("since moves though the state is the same")
	}
	s.addDelivered(3)
	s.addFiltered(2)
	s.addDeadLetter()
	s.setInFlight(4)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.setStaged(5, 60, at)
	s.setFailed("retrying", errors.New("no route\x00"))
	got := s.status("one")
	if got.Sink != "one" || got.State != "retrying" || got.Delivered != 3 || got.Filtered != 2 || got.DeadLetters != 1 || got.InFlight != 4 ||
		got.StagedEvents != 5 || got.StagedBytes != 60 || !got.StagedSince.Equal(at) || got.LastError != "no route\ufffd" || got.LastErrorAt == nil {
		t.Errorf("status %+v", got)
	}
	if !got.Blocked() {
		t.Error("a sink that retries is blocked")
	}
	s.setStaged(0, 0, time.Time{})
	if got := s.status("one"); got.StagedSince != nil {
		t.Errorf("nothing is staged since %v", got.StagedSince)
	}
}

func TestDeliveryKeepsTheStateOfAFailureUntilASuccess(t *testing.T) {
	t.Parallel()
	var s deliveryStats
	s.setFailed("retrying", errors.New("refused"))
	s.setState("delivering") // the next attempt
	if got := s.status("one").State; got != "retrying" {
		t.Errorf("while it tries again: %s", got)
	}
	s.setState("waiting") // for the plugin
	s.setState("delivering")
	if got := s.status("one").State; got != "retrying" {
		t.Errorf("after it waited: %s", got)
	}
	s.addDelivered(1)
	if got := s.status("one").State; got != "delivering" {
		t.Errorf("after a success: %s", got)
	}
	s.setFailed("retrying", errors.New("refused"))
	s.setFailed("delivering", errors.New("a dead letter"))
	s.setState("delivering")
	if got := s.status("one").State; got != "delivering" {
		t.Errorf("after a dead letter: %s", got)
	}
}
