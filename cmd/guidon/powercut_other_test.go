//go:build !linux

package main_test

// serveDisk does nothing: the disk of TestPowerCut needs Linux.
func serveDisk() {}
