package operators_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
)

var errBroken = errors.New("broken")

func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	p := h.pair(t, "t/volatile", `"x"`, `"x"`)
	f.set(func() { f.hold = func(context.Context) error { return errBroken } })
	for range 100 {
		if got := h.ask(t, noon, p); got[0] != match.Unknown {
			t.Fatalf("%v", got)
		}
	}
	if n := f.calls(); n < 20 || n > 50 {
		t.Errorf("%d calls before the breaker opened", n)
	}
	if h.count(t, "guidon_operators_unknown_total", "open") < 50 || h.count(t, "guidon_operators_breaker_open", "decide") != 1 {
		t.Error("not counted")
	}

	// Actions have a limiter of their own.
	f.set(func() { f.hold = nil })
	round := h.NewRound()
	round.Match(p.Program, &p.Value)
	if !round.Ask(t.Context()) || round.Match(p.Program, &p.Value) != match.True {
		t.Error("an action is not answered")
	}

	// One call detects that the plugin answers again.
	eventually(t, "answered", func() bool { return h.ask(t, noon, p)[0] == match.True })
	if h.count(t, "guidon_operators_breaker_open", "decide") != 0 {
		t.Error("still open")
	}
}

func TestBreakerToleratesFewFailures(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	p := h.pair(t, "t/volatile", `"x"`, `"x"`)
	n := 0
	f.set(func() {
		f.hold = func(context.Context) error {
			if n++; n%3 == 0 {
				return errBroken
			}
			return nil
		}
	})
	for range 90 {
		h.ask(t, noon, p)
	}
	if f.calls() != 90 {
		t.Errorf("%d calls", f.calls())
	}
}

func TestCancelledCallsAreNoFailures(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	p := h.pair(t, "t/volatile", `"x"`, `"x"`)
	f.set(func() { f.hold = forever })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		h.MatchPairs(gone, noon, []match.Pair{p}, make([]match.Result, 1))
	}
	f.set(func() { f.hold = nil })
	if got := h.ask(t, noon, p); got[0] != match.True {
		t.Errorf("%v", got)
	}
}

func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, func(c *operators.Config) { c.MaxInFlight = 1 }, f)
	p := h.pair(t, "t/volatile", `"x"`, `"x"`)
	entered, leave := make(chan struct{}), make(chan struct{})
	f.set(func() {
		f.hold = func(context.Context) error {
			close(entered)
			<-leave
			return nil
		}
	})
	first := make(chan []match.Result)
	go func() { first <- h.ask(t, noon, p) }()
	<-entered
	if got := h.ask(t, noon, p); got[0] != match.Unknown || h.count(t, "guidon_operators_unknown_total", "busy") != 1 {
		t.Errorf("%v", got)
	}
	close(leave)
	if got := <-first; got[0] != match.True {
		t.Errorf("the first: %v", got)
	}
}

func TestRoundCallsOnceForPendingPairs(t *testing.T) {
	t.Parallel()
	f := opened("t")
	h := newService(t, nil, f)
	round := h.NewRound()
	if round.Ask(t.Context()) {
		t.Error("called without pairs")
	}
	yes, no := h.pair(t, "t/volatile", `"x"`, `"x"`), h.pair(t, "t/volatile", `"x"`, `"y"`)
	all := func() string {
		return fmt.Sprint(round.Match(yes.Program, &yes.Value), round.Match(no.Program, &no.Value), round.Match(yes.Program, &yes.Value))
	}
	if got := all(); got != "unknown unknown unknown" {
		t.Error(got)
	}
	if !round.Ask(t.Context()) || round.Ask(t.Context()) {
		t.Error("not exactly one call")
	}
	if got := all(); got != "true false true" {
		t.Error(got)
	}
	// More pairs than one call takes go in several calls.
	for i := range 2500 {
		v := match.Text(fmt.Sprint(i))
		round.Match(yes.Program, &v)
	}
	round.Ask(t.Context())
	if f.calls() != 4 || len(f.batches[3].Pairs) != 500 {
		t.Errorf("%d calls", f.calls())
	}
	last := match.Text("2499")
	if got := round.Match(yes.Program, &last); got != match.False {
		t.Errorf("%s", got)
	}
}

func TestRoundEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.hold = forever
	h := newService(t, func(c *operators.Config) { c.ActionTimeout = 10 * time.Millisecond }, f)
	p := h.pair(t, "t/pure", `"x"`, `"x"`)
	round := h.NewRound()
	round.Match(p.Program, &p.Value)
	if !round.Ask(t.Context()) || round.Match(p.Program, &p.Value) != match.Unknown {
		t.Error("a result without an answer")
	}
}
