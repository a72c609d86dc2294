//go:build !unix

package listener

// MaxByDescriptors returns the number of connections for which the process has
// descriptors, and the number of files that it may open: no bound is known.
func MaxByDescriptors() (connections, files int) { return 1 << 30, 1 << 30 }
