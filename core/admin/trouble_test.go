package admin

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
)

func TestTroubleNamesEveryStateThatDoesNotWork(t *testing.T) {
	t.Parallel()
	ready := status.Status{State: lifecycle.StateReady, LastError: "of an earlier process"}
	next := time.Now().Add(time.Hour).UTC()
	quarantined := status.Status{State: lifecycle.StateQuarantined, LastError: "exited with code 3", NextStart: &next}
	wrong := status.Status{State: lifecycle.StateMisconfigured, Diagnostics: []wire.Diagnostic{{Pointer: "/path", Summary: "is missing"}}}
	upgrade := status.Status{State: lifecycle.StateDegraded, Reason: lifecycle.ReasonUpgradeFailed, LastError: "exited with code 7"}
	tests := []struct {
		name     string
		instance status.Status
		delivery *delivery.SinkStatus
		want     string
	}{
		{"no sink", ready, nil, ""},
		{"idle", ready, &delivery.SinkStatus{State: "idle", LastError: "of an earlier batch"}, ""},
		{"delivering", ready, &delivery.SinkStatus{State: "delivering"}, ""},
		{"starting", ready, &delivery.SinkStatus{State: "starting"}, "delivery is starting"},
		{"waiting", ready, &delivery.SinkStatus{State: "waiting"}, "delivery is waiting"},
		{"paused", ready, &delivery.SinkStatus{State: "paused", LastError: "503", Paused: &delivery.Pause{Reason: "retries exhausted: 503"}}, "delivery is paused: retries exhausted: 503"},
		{"retrying", ready, &delivery.SinkStatus{State: "retrying", LastError: "refused"}, "delivery is retrying: refused"},
		{"throttled", ready, &delivery.SinkStatus{State: "throttled", LastError: "slow down"}, "delivery is throttled: slow down"},
		{"not flushing", ready, &delivery.SinkStatus{State: "not_flushing", LastError: "nothing"}, "delivery is not_flushing: nothing"},
		{"wrong delivery", ready, &delivery.SinkStatus{State: "misconfigured", LastError: "no hash key"}, "delivery is misconfigured: no hash key"},
		{"quarantined", quarantined, &delivery.SinkStatus{State: "waiting"}, "exited with code 3; next try at " + next.Format(time.RFC3339)},
		{"another file", status.Status{State: lifecycle.StateReady, Hint: "the file is another one"}, &delivery.SinkStatus{State: "idle"}, "the file is another one"},
		{"failed upgrade", upgrade, &delivery.SinkStatus{State: "idle"}, "the former version serves, the upgrade failed: exited with code 7"},
		{"wrong config", wrong, nil, "/path is missing"},
		{"wrong config and paused", wrong, &delivery.SinkStatus{State: "paused", Paused: &delivery.Pause{Reason: "asked"}}, "/path is missing; delivery is paused: asked"},
	}
	for _, tt := range tests {
		if got := troubleOf(tt.instance, tt.delivery); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
