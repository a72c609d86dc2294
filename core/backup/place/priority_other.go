//go:build !linux

package place

// LowerPriority does nothing: only Linux has a priority for each thread.
func LowerPriority() {}
