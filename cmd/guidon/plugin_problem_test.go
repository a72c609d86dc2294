package main

import "testing"

func TestStatusShowsWhySinkReceivesNothing(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]sinkDelivery{
		"": {State: "delivering", LastError: "of an earlier batch"},
		"delivery is paused: retries exhausted: 503": {State: "paused", Paused: &struct{ Reason string }{"retries exhausted: 503"}},
		"delivery is retrying: connection refused":   {State: "retrying", LastError: "connection refused"},
		"delivery is waiting":                        {State: "waiting"},
	} {
		if got := (&instance{State: "ready", Delivery: &d}).problem(); got != want {
			t.Errorf("%s: got %q, want %q", d.State, got, want)
		}
	}
}
