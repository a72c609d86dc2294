//go:build unix && !linux

package process

import "syscall"

// childAttributes starts the child in its own process group. This platform cannot
// kill the child when the host dies; the SDK in the plugin watches the host.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// reap waits for the exit, collects the exit status and kills the rest of the
// process group.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
}

// isZombie returns false: an exit that is not reaped is not known here.
func isZombie(int) bool { return false }

// runningImage returns "": a replaced program cannot be started again here.
func runningImage(string) string { return "" }
