// Package lifecycle declares the states of a plugin instance, the failures that
// lead to them and the delays between restarts.
//
// A Failure carries the state that follows from it: StateBackoff leads to a restart
// after a delay, every other state waits for the operator. Restarts computes the
// delays and detects instances that fail too often. The package is pure; the
// supervisor in core/host waits and acts.
package lifecycle

import (
	"strings"

	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/text"
)

// State is the state of an instance.
type State string

// The states. Calls reach the plugin in StateReady and StateDegraded only.
const (
	StateDiscovered State = "discovered" // configured, not started yet
	StateVerified   State = "verified"   // the executable is known and trusted
	StateStarting   State = "starting"   // the process is starting
	StateHandshaken State = "handshaken" // the process answers
	StateConfigured State = "configured" // it accepted its config and is connecting
	StateReady      State = "ready"      // it serves
	StateDegraded   State = "degraded"   // it serves with a problem
	StateDraining   State = "draining"   // it finishes its calls
	StateStopped    State = "stopped"    // it was stopped

	StateBackoff       State = "backoff"       // it failed and will be restarted
	StateQuarantined   State = "quarantined"   // it failed too often
	StateIncompatible  State = "incompatible"  // it implements another protocol or kind
	StateUntrusted     State = "untrusted"     // its checksum or its process is not the configured one
	StateMisconfigured State = "misconfigured" // it needs another config
)

// States are all states.
var States = []State{
	StateDiscovered, StateVerified, StateStarting, StateHandshaken, StateConfigured, StateReady, StateDegraded,
	StateDraining, StateStopped, StateBackoff, StateQuarantined, StateIncompatible, StateUntrusted, StateMisconfigured,
}

// Usable reports whether calls reach the plugin in this state.
func (s State) Usable() bool { return s == StateReady || s == StateDegraded }

// Failure is why an instance cannot be used, and the state that follows.
type Failure struct {
	State       State  // StateBackoff, or a state that waits for the operator
	Reason      string // a label in snake_case
	Message     string // for the operator, redacted
	Diagnostics []wire.Diagnostic
	Exit        *process.ExitStatus // of a process that did not start
}

func (f *Failure) Error() string { return f.Message }

// OneLine returns the text of err in one line of limited length.
func OneLine(err error) string {
	return text.Ellipsis(strings.Join(strings.Fields(err.Error()), " "), 300)
}

// ReasonUpgradeFailed is the reason of a degraded instance whose configured generation
// does not start, so that the previous one still serves.
const ReasonUpgradeFailed = "upgrade_failed"
