package pause_test

import (
	"context"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
)

// TestPausesHoldOnAllNodes pauses and resumes a sink on either of two nodes that share
// one Postgres.
func TestPausesHoldOnAllNodes(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	store := pause.NewStore(d)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	node := func() *pause.Gate {
		g := pause.NewGate()
		g.Set(nil)
		go func() {
			store.Follow(ctx, func() map[string]*pause.Gate { return map[string]*pause.Gate{"lines": g} })
			ended <- struct{}{}
		}()
		return g
	}
	a, b := node(), node()
	t.Cleanup(func() { stop(); <-ended; <-ended })
	change := func(g *pause.Gate, p *pause.Pause) {
		t.Helper()
		if err := store.Change(t.Context(), "lines", g, p); err != nil {
			t.Fatal(err)
		}
		if g.Paused() != (p != nil) {
			t.Fatal("the node itself does not follow")
		}
	}
	expect := func(what string, g *pause.Gate, paused bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); g.Paused() != paused; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never seen: %s", what)
			}
		}
	}
	change(a, &pause.Pause{At: time.Now().UTC(), Reason: "by hand"})
	expect("the pause on the other node", b, true)
	change(b, nil)
	expect("the end of the pause on the first node", a, false)
	b.Hold(&pause.Pause{At: time.Now().UTC(), Reason: "retries exhausted"})
	expect("a pause that was not saved, on the other node", a, true)
	if !b.Paused() {
		t.Error("a pause that was not saved has ended")
	}
}
