package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes starts the child in its own process group and has the kernel
// kill it when the host dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the exit, kills the rest of the process group and collects the
// exit status. Until then the zombie reserves the group id, so that the kill
// cannot reach an unrelated process.
func (p *Process) reap() {
	for unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Wait()
	p.gone = true
}

// isZombie reports whether a child of this process has ended and is not reaped.
func isZombie(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0 // without a child that has ended, nothing is written to info
}

// runningImage returns the path of the running program when an upgrade has replaced
// the file at path, so that host and bundled plugins stay the same build. It
// returns "" when path is unchanged or another program.
func runningImage(path string) string {
	const image = "/proc/self/exe"
	link, err := os.Readlink(image)
	if err == nil && link == path+" (deleted)" {
		return image
	}
	return ""
}
