// Package cgroup runs plugin processes in control groups (cgroup v2) of their own,
// where the server may make them: below its own group, if that is delegated to it
// (systemd: Delegate=yes; a container with a writable /sys/fs/cgroup).
//
// A group holds a process and everything that it starts, also what leaves the
// process group, so that all of them can be killed and their memory limited
// together. Without a delegated group the caller falls back to process groups and
// rlimits. Other platforms than Linux have no groups.
//
// The format of the files is that of the kernel's documentation,
// Documentation/admin-guide/cgroup-v2.rst.
package cgroup

// Limits are the limits of a group; zeros are none.
type Limits struct {
	// MemoryBytes is the memory of all processes of the group (memory.max). They
	// get no swap.
	MemoryBytes int
	// Processes is the number of processes and threads (pids.max).
	Processes int
	// Weight is the share of the processors under load, 1 to 10,000 (cpu.weight);
	// a group without it has 100.
	Weight int
}
