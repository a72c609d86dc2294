//go:build unix && !linux

package process

import "syscall"

// HideMemory does nothing on this platform.
func HideMemory() error { return nil }

// withoutNetwork does nothing: Launch has failed.
func withoutNetwork(*syscall.SysProcAttr) {}

func startInNamespace(start func() error) error { return start() }
