package process

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/core/host/cgroup"
	"github.com/guidonhq/guidon/core/text"
)

// ExitStatus describes how a process ended.
type ExitStatus struct {
	// Code is the exit code, -1 after a signal.
	Code int `json:"code"`
	// Signal is the name of the signal that ended the process.
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
	// OutOfMemory is true when the process ended for lack of memory.
	OutOfMemory bool `json:"out_of_memory,omitempty"`
	// MemoryLimit is the configured limit in bytes that the process reached.
	MemoryLimit int `json:"memory_limit,omitempty"`
	// Expected is true when the host ended the process.
	Expected bool `json:"expected"`
	// Foreign is true when the host did not start the process, so that only the
	// loss of the connection is known.
	Foreign bool `json:"foreign,omitempty"`
	// Stderr is the end of its standard error.
	Stderr []string `json:"stderr,omitempty"`
}

// describeExit returns the exit status of a reaped process.
func (p *Process) describeExit() ExitStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := ExitStatus{Code: p.cmd.ProcessState.ExitCode(), At: time.Now().UTC(), Expected: p.expected, Stderr: p.logs.tail()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal().String()
		kills, known := cgroup.OutOfMemoryKills()
		out.OutOfMemory = ws.Signal() == syscall.SIGKILL && !p.expected && known && kills > p.oomKillsAtStart
	}
	out.OutOfMemory = out.OutOfMemory || !p.expected && reportsOutOfMemory(out.Stderr)
	if n, known := p.group.OutOfMemoryKills(); known && n > 0 && !p.expected {
		out.OutOfMemory, out.MemoryLimit = true, p.limits.MemoryBytes
	}
	if out.OutOfMemory && out.Signal != syscall.SIGKILL.String() { // the kernel kills for its own lack
		out.MemoryLimit = p.limits.MemoryBytes
	}
	return out
}

// reportsOutOfMemory recognizes the messages of runtimes that got no memory.
func reportsOutOfMemory(lines []string) bool {
	for _, line := range lines {
		for _, message := range []string{"out of memory", "cannot allocate memory", "failed to allocate", "MemoryError", "std::bad_alloc", "OutOfMemoryError", "memory allocation of"} {
			if strings.Contains(line, message) && (isPanic(line) || strings.HasPrefix(line, "runtime: ") || message != "failed to allocate") {
				return true
			}
		}
	}
	return false
}

// Reason returns the exit as a label: disconnected, memory_limit, out_of_memory,
// cpu_time, signal or exit.
func (e ExitStatus) Reason() string {
	switch {
	case e.Foreign:
		return "disconnected"
	case e.MemoryLimit > 0:
		return "memory_limit"
	case e.OutOfMemory:
		return "out_of_memory"
	case e.Signal == syscall.SIGXCPU.String():
		return "cpu_time"
	case e.Signal != "":
		return "signal"
	}
	return "exit"
}

// String returns one sentence for the operator.
func (e ExitStatus) String() string { return e.sentence("") }

// sentence is String with a phrase that tells when the process ended.
func (e ExitStatus) sentence(when string) string {
	if e.Foreign {
		return "the connection to the plugin was lost"
	}
	out := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		out = "was ended by a signal: " + e.Signal
	}
	switch {
	case e.MemoryLimit > 0:
		out += fmt.Sprintf(" at its memory limit of %d MiB (limits.memory_bytes)", e.MemoryLimit>>20)
	case e.OutOfMemory:
		out += " for want of memory"
	case e.Signal == syscall.SIGKILL.String() && !e.Expected:
		out += " (not by the server: by a person, or by the kernel for want of memory)"
	}
	out += when
	if len(e.Stderr) > 0 {
		out += "; last line: " + text.Ellipsis(lastLine(e.Stderr), 300)
	}
	return out
}

// lastLine returns the line that most likely names the cause: the first line of
// a panic, otherwise the last line.
func lastLine(lines []string) string {
	for _, line := range lines {
		if isPanic(line) {
			return line
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
