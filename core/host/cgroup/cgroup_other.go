//go:build !linux

package cgroup

import (
	"errors"
	"syscall"
)

// Parent makes no groups on this platform.
type Parent struct{}

// Find returns nil.
func Find() *Parent { return nil }

// OutOfMemoryKills knows no count.
func OutOfMemoryKills() (n int64, known bool) { return 0, false }

// New fails.
func (*Parent) New(Limits) (*Group, error) { return nil, errors.ErrUnsupported }

// Group does nothing on this platform.
type Group struct{}

// Hold does nothing.
func (*Group) Hold(*syscall.SysProcAttr) {}

// LimitsMemory returns false.
func (*Group) LimitsMemory() bool { return false }

// OutOfMemoryKills knows no count.
func (*Group) OutOfMemoryKills() (n int64, known bool) { return 0, false }

// Kill kills nothing.
func (*Group) Kill() bool { return false }

// Remove does nothing.
func (*Group) Remove() {}
