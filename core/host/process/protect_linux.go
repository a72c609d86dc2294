package process

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hidden is whether HideMemory has been called, and mu orders its interruptions.
var hidden struct {
	mu sync.Mutex
	on bool
}

// HideMemory keeps other processes of the same user, plugins above all, from
// reading the memory and the environment of this one in /proc, and from tracing
// it. It also ends core dumps of this process. It has no effect on processes of
// root.
func HideMemory() error {
	hidden.mu.Lock()
	defer hidden.mu.Unlock()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the memory of the server: %w", err)
	}
	hidden.on = true
	return nil
}

// withoutNetwork adds to attributes what starts a child without a network: in a
// network namespace of its own. A user other than root needs a user namespace
// for that, in which the child keeps its ids.
func withoutNetwork(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWNET
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
}

// startInNamespace runs start, which starts a child in a namespace. The maps of a
// user namespace belong to root while the memory of the server is hidden, so it
// is shown meanwhile.
func startInNamespace(start func() error) error {
	hidden.mu.Lock()
	defer hidden.mu.Unlock()
	if hidden.on && os.Geteuid() != 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }()
	}
	return start()
}
