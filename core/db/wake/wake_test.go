package wake_test

import (
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/db/wake"
)

func TestPublishSendsTheName(t *testing.T) {
	t.Parallel()
	var w wake.Wakes
	w.Flags.Publish() // without Connect it has no effect
	var sent []string
	w.Connect(func(name string) { sent = append(sent, name) })
	w.Flags.Publish()
	w.Actions.Publish()
	w.Accounts.Publish()
	if want := []string{"flags", "actions", "accounts"}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

func TestReceiveWakesFollowers(t *testing.T) {
	t.Parallel()
	var w wake.Wakes
	first, second, actions := w.Flags.Follow(), w.Flags.Follow(), w.Actions.Follow()
	for _, c := range []struct {
		name          string
		flags, action int
	}{{"flags", 1, 0}, {"actions", 0, 1}, {"", 1, 1}, {"of a later version", 0, 0}} {
		for range 3 { // more than one at once are one
			w.Receive(c.name)
		}
		if len(first) != c.flags || len(second) != c.flags || len(actions) != c.action {
			t.Errorf("%q: %d, %d, %d wake-ups, want %d, %d, %d", c.name, len(first), len(second), len(actions), c.flags, c.flags, c.action)
		}
		for _, f := range []<-chan struct{}{first, second, actions} {
			if len(f) > 0 {
				<-f
			}
		}
	}
}
