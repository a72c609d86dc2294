package admin

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/text"
)

// troubleOf returns in one line why an instance does not work, or works with a problem;
// "" if it works. d is the delivery to a sink, nil for other kinds.
func troubleOf(st status.Status, d *delivery.SinkStatus) string {
	own := processTrouble(st)
	if d == nil {
		return own
	}
	switch d.State {
	case "idle", "delivering":
		return own
	case "waiting", "starting": // for the plugin
		if own != "" {
			return own
		}
	}
	out := "delivery is " + d.State
	switch {
	case d.Paused != nil:
		out += ": " + d.Paused.Reason
	case d.LastError != "":
		out += ": " + d.LastError
	}
	if own != "" && !st.State.Usable() {
		return own + "; " + out
	}
	return out
}

// processTrouble is troubleOf without the delivery.
func processTrouble(st status.Status) string {
	var out string
	switch {
	case len(st.Diagnostics) > 0:
		out = st.Diagnostics[0].Pointer + " " + st.Diagnostics[0].Summary
	case st.State == lifecycle.StateReady:
		return st.Hint
	case st.LastError != "":
		out = st.LastError
	default:
		out = st.Reason
	}
	if st.State == lifecycle.StateDegraded && st.Reason == lifecycle.ReasonUpgradeFailed {
		out = "the former version serves, the upgrade failed: " + out
	}
	if st.NextStart != nil && time.Until(*st.NextStart) > time.Second {
		out += "; next try at " + st.NextStart.UTC().Format(time.RFC3339)
	}
	return out
}

// pluginTrouble is the trouble of one instance in the readiness answer.
type pluginTrouble struct {
	Name    string          `json:"name"`
	State   lifecycle.State `json:"state"`
	Trouble string          `json:"trouble"`
}

// pluginsState are the instances in trouble. Trouble of a minute makes the server
// degraded, unless it is only a hint or a remark of a plugin that works; capture and
// flags work without plugins, so it stays ready.
type pluginsState struct {
	Trouble []pluginTrouble `json:"trouble"`

	lasting bool
}

// Degraded implements the interface of core/web/health.
func (s pluginsState) Degraded() bool { return s.lasting }

// lastingTrouble is how long an instance may be in trouble before an operator should act.
const lastingTrouble = time.Minute

func (r *Readiness) pluginsState() pluginsState {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	deliveries, _ := r.delivery.Status(ctx) // without the journal, what the host knows
	out := pluginsState{Trouble: []pluginTrouble{}}
	for _, st := range statusOf(r.host, r.leftOut) {
		since, d := st.Since, findDelivery(deliveries, st.Name)
		if st.State == lifecycle.StateReady && d != nil {
			since = d.Since
		}
		if trouble := troubleOf(st, d); trouble != "" {
			out.Trouble = append(out.Trouble, pluginTrouble{st.Name, st.State, text.Ellipsis(trouble, 300)})
			hint := st.State == lifecycle.StateReady && trouble == processTrouble(st)
			out.lasting = out.lasting || !hint && st.Reason != "managed_by_file" && time.Since(since) >= lastingTrouble
		}
	}
	return out
}

// findDelivery returns the delivery to a sink, or nil.
func findDelivery(deliveries []delivery.SinkStatus, sink string) *delivery.SinkStatus {
	for i := range deliveries {
		if deliveries[i].Sink == sink {
			return &deliveries[i]
		}
	}
	return nil
}
