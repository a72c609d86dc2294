//go:build !linux

package backup

// lowerPriority does nothing: only Linux has a priority for each thread.
func lowerPriority() {}
