package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes gives the child a group of its own and ties its life to ours.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the process to end, kills what it left in its group, and takes
// its exit status. The zombie keeps the number of the group taken until then,
// so that the kill cannot meet a stranger.
func (p *process) reap() {
	for unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Wait()
	p.gone = true
}

// runningImage is the program that is running, for a start of path after an
// upgrade has replaced the file: host and bundled plugins are always the same
// build. It is "" when path is still that program, or another one.
func runningImage(path string) string {
	const image = "/proc/self/exe"
	link, err := os.Readlink(image)
	if err == nil && link == path+" (deleted)" {
		return image
	}
	return ""
}
