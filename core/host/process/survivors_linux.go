package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killSurvivors kills descendants that have left the process group (setsid). They
// are found by the socket directory in their environment, which is different for
// each process of the host; one that has cleared its environment is not found. It
// returns the number of killed processes. It repeats until none is left, as a
// process may fork meanwhile, for at most a second.
func (p *Process) killSurvivors() (killed int) {
	if p.socketDir == "" {
		return 0
	}
	mark := []byte(socketDirKey + "=" + p.socketDir)
	for deadline := time.Now().Add(time.Second); ; {
		n := killMarked(mark)
		killed += n
		if n == 0 || time.Now().After(deadline) {
			return killed
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// killMarked kills the processes that have mark in their environment. A pidfd
// holds on to the process between the look and the kill.
func killMarked(mark []byte) (n int) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if hasVariable(pid, mark) && errors.Is(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0), nil) {
			n++
		}
		_ = unix.Close(fd)
	}
	return n
}

// hasVariable reports whether a process was started with a variable, given as
// name=value. A zombie has none.
func hasVariable(pid int, variable []byte) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(one, variable) {
			return true
		}
	}
	return false
}
