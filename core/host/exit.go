package host

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// describeExit says how the process ended. Called once it is reaped.
func (p *process) describeExit() ExitStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := ExitStatus{Code: p.cmd.ProcessState.ExitCode(), At: time.Now().UTC(), Expected: p.expect, Stderr: p.logs.tail()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal().String()
		kills, known := outOfMemoryKills()
		out.OutOfMemory = ws.Signal() == syscall.SIGKILL && !p.expect && known && kills > p.ooms
	}
	out.OutOfMemory = out.OutOfMemory || !p.expect && saysOutOfMemory(out.Stderr)
	return out
}

// saysOutOfMemory recognises the last words of a process that got no memory.
func saysOutOfMemory(lines []string) bool {
	for _, line := range lines {
		for _, words := range []string{"out of memory", "cannot allocate memory", "failed to allocate", "MemoryError", "std::bad_alloc"} {
			if strings.Contains(line, words) && (isPanic(line) || strings.HasPrefix(line, "runtime: ") || words != "failed to allocate") {
				return true
			}
		}
	}
	return false
}

// reason is a word for how the process ended.
func (e ExitStatus) reason() string {
	switch {
	case e.Foreign:
		return "disconnected"
	case e.OutOfMemory:
		return "out_of_memory"
	case e.Signal == syscall.SIGXCPU.String():
		return "cpu_time"
	case e.Signal != "":
		return "signal"
	}
	return "exit"
}

// String is one sentence for the operator.
func (e ExitStatus) String() string { return e.sentence("") }

// sentence is String with a word on when it happened.
func (e ExitStatus) sentence(when string) string {
	if e.Foreign {
		return "the connection to the plugin was lost"
	}
	text := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		text = "was ended by a signal: " + e.Signal
	}
	switch {
	case e.OutOfMemory:
		text += " for want of memory"
	case e.Signal == syscall.SIGKILL.String() && !e.Expected:
		text += " (not by the server: by a person, or by the kernel for want of memory)"
	}
	text += when
	if len(e.Stderr) > 0 {
		text += "; last line: " + clip(lastWords(e.Stderr), 300)
	}
	return text
}

// lastWords is the line that most likely says why: the panic, else the last.
func lastWords(lines []string) string {
	for _, line := range lines {
		if isPanic(line) {
			return line
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// startFailure is one sentence on why a process did not come up.
func (p *process) startFailure(err error, limit time.Duration, timedOut bool) string {
	p.mu.Lock()
	early, pid := p.early, p.pid
	p.mu.Unlock()
	switch {
	case pid == 0:
		return "could not be executed: " + err.Error()
	case early != "":
		return fmt.Sprintf("printed before the handshake: %q (only the handshake line may go to standard output)", early)
	case timedOut:
		return fmt.Sprintf("no handshake within %s", limit)
	case !p.exit.Expected:
		return p.exit.sentence(" while starting")
	default:
		return "handshake failed: " + clip(strings.ReplaceAll(err.Error(), "\n", " "), 300)
	}
}
