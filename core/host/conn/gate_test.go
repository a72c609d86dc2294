package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/conn"
)

func TestGatePassesCallersToTheOpenSession(t *testing.T) {
	t.Parallel()
	g, first, second := conn.NewGate(), &conn.Session{}, &conn.Session{}
	if g.Enter() != nil || g.Current() != nil {
		t.Error("a new gate is open")
	}
	waited := make(chan error, 1)
	go func() { waited <- g.Wait(t.Context()) }()
	g.Open(first)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if g.Enter() != first {
		t.Error("entered another session")
	}
	g.Open(second)
	if g.Close(first) || g.Current() != second {
		t.Error("the close of an old session closed the gate")
	}
	if !g.Close(second) || g.Close(nil) || g.Current() != nil {
		t.Error("not exactly one close")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if g.Wait(ctx) == nil {
		t.Error("Wait returned at a closed gate")
	}
}

func TestWaitIdle(t *testing.T) {
	t.Parallel()
	var calls conn.InFlight
	if !calls.WaitIdle(t.Context(), 0) {
		t.Error("not idle without calls")
	}
	calls.Add()
	if calls.WaitIdle(t.Context(), time.Millisecond) {
		t.Error("idle during a call")
	}
	time.AfterFunc(time.Millisecond, calls.Done)
	if !calls.WaitIdle(t.Context(), time.Minute) {
		t.Error("not idle after the call")
	}
}

func TestWatermarkOnlyGrows(t *testing.T) {
	t.Parallel()
	var w conn.Watermark
	for _, n := range []uint64{3, 7, 5, 0} {
		w.Raise(n)
	}
	if w.Load() != 7 {
		t.Errorf("%d, want 7", w.Load())
	}
}
