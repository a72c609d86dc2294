//go:build unix && !linux

package host

import (
	"syscall"
)

// childAttributes gives the child a group of its own. The kernel has no way to
// tie its life to ours: the SDK in the plugin watches us instead.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// reap waits for the process to end, takes its exit status, and kills what it
// left in its group.
func (p *process) reap() {
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
}

// runningImage finds nothing where a replaced program cannot be started again.
func runningImage(string) string { return "" }
