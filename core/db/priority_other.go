//go:build !linux

package db

// lowerPriority does nothing: only Linux has a priority for each thread.
func lowerPriority() {}
