// Package status keeps the status of a plugin instance for operators: its state with
// the begin and the reason, the last error, the process and the last exit.
//
// A Tracker belongs to one instance. The supervisor in core/host reports each change to
// it; the tracker logs the change, sets the metric and passes the new status to the
// host's listeners. A Status contains no secrets: every text in it is redacted before.
package status

import (
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/wire"
)

// Status is the status of an instance for operators. It contains no secrets.
type Status struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Use      string `json:"use"`
	Required bool   `json:"required"`
	// State with its begin and its reason.
	State  lifecycle.State `json:"state"`
	Since  time.Time       `json:"since"`
	Reason string          `json:"reason,omitempty"`
	// LastError is the last error, kept after a recovery.
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Diagnostics are problems of the config.
	Diagnostics []wire.Diagnostic `json:"diagnostics,omitempty"`
	// Generation is the number of the config that serves. It is not the newest one
	// while an upgrade runs or has failed.
	Generation uint64 `json:"generation,omitempty"`
	// SHA256 is the checksum of a third-party executable, as it runs.
	SHA256 string `json:"sha256,omitempty"`
	// InstalledSHA256 is the checksum of the file at its path, if that is another one than
	// the one that runs.
	InstalledSHA256 string `json:"installed_sha256,omitempty"`
	// Hint is what an operator may not expect of an instance that works, such as that the
	// file at its path was replaced and does not run.
	Hint string `json:"hint,omitempty"`
	// Unverified is true when that executable runs without a configured checksum.
	Unverified bool `json:"unverified,omitempty"`
	// Address is the address of an attached plugin.
	Address string `json:"address,omitempty"`
	// PID is 0 without a process. Instances may share one.
	PID int `json:"pid,omitempty"`
	// Plugin, Version and SDK are reported by the running plugin.
	Plugin  string `json:"plugin,omitempty"`
	Version string `json:"version,omitempty"`
	SDK     string `json:"sdk,omitempty"`
	// Restarts counts the processes started after the first.
	Restarts int `json:"restarts"`
	// NextStart is the time of the next start, in backoff and quarantine.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Exit is how the last process ended.
	Exit *process.ExitStatus `json:"exit,omitempty"`
	// CommittedThrough is the highest sequence number known to be committed.
	CommittedThrough uint64 `json:"committed_through,omitempty"`
}
