package host

import "time"

// State is where an instance is in its life.
type State string

// The states. An instance is used in Ready and Degraded only.
const (
	StateDiscovered State = "discovered" // configured, not looked at yet
	StateVerified   State = "verified"   // the executable is known and trusted
	StateStarting   State = "starting"   // the process is coming up
	StateHandshaken State = "handshaken" // it answers
	StateConfigured State = "configured" // it took its config, and is connecting
	StateReady      State = "ready"      // it works
	StateDegraded   State = "degraded"   // it works, but something is wrong
	StateDraining   State = "draining"   // it is finishing
	StateStopped    State = "stopped"    // it was stopped

	StateBackoff       State = "backoff"       // it died and will be started again
	StateQuarantined   State = "quarantined"   // it died too often
	StateIncompatible  State = "incompatible"  // it speaks another contract
	StateUntrusted     State = "untrusted"     // its checksum is missing or wrong, or it is not who was meant
	StateMisconfigured State = "misconfigured" // it waits for another config
)

// states lists them all, for the metric.
var states = []State{
	StateDiscovered, StateVerified, StateStarting, StateHandshaken, StateConfigured, StateReady, StateDegraded,
	StateDraining, StateStopped, StateBackoff, StateQuarantined, StateIncompatible, StateUntrusted, StateMisconfigured,
}

// Usable reports whether calls reach the plugin in this state.
func (s State) Usable() bool { return s == StateReady || s == StateDegraded }

// InstanceStatus is what an operator sees of an instance. It holds no secret.
type InstanceStatus struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Use      string `json:"use"`
	Required bool   `json:"required"`
	// State, and since when and why.
	State  State     `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
	// LastError is the last thing that went wrong, kept after a recovery.
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Diagnostics say what is wrong with the config.
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// Generation counts the configs of the instance; it is that of the one that
	// serves, which is not the newest while that one is coming up or has failed.
	Generation uint64 `json:"generation,omitempty"`
	// SHA256 is the checksum of the executable, of a third party's plugin.
	SHA256 string `json:"sha256,omitempty"`
	// Unverified is true when nobody vouched for that executable.
	Unverified bool `json:"unverified,omitempty"`
	// Address is where a plugin is reached that the server does not start.
	Address string `json:"address,omitempty"`
	// PID is 0 when there is no process. Instances may share one.
	PID int `json:"pid,omitempty"`
	// Plugin and Version are what the running plugin says it is.
	Plugin  string `json:"plugin,omitempty"`
	Version string `json:"version,omitempty"`
	SDK     string `json:"sdk,omitempty"`
	// Restarts counts the processes started after the first.
	Restarts int `json:"restarts"`
	// NextStart is when the next process is started, in backoff.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Exit is how the last process ended.
	Exit *ExitStatus `json:"exit,omitempty"`
	// CommittedThrough is the highest sequence number known to be safe.
	CommittedThrough uint64 `json:"committed_through,omitempty"`
}

// Diagnostic is one remark of a plugin about its config.
type Diagnostic struct {
	Severity string `json:"severity"`
	Pointer  string `json:"pointer"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
}

// ExitStatus is how a process ended.
type ExitStatus struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int `json:"code"`
	// Signal is the name of that signal.
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
	// OutOfMemory is true when it ended for want of memory.
	OutOfMemory bool `json:"out_of_memory,omitempty"`
	// Expected is true when the host had asked it to end.
	Expected bool `json:"expected"`
	// Foreign is true when the process was not ours, so that nothing is known.
	Foreign bool `json:"foreign,omitempty"`
	// Stderr is the end of what it wrote to standard error.
	Stderr []string `json:"stderr,omitempty"`
}
