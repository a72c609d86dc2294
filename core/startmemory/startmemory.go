// Package startmemory returns memory that only the start of a process needed.
//
// The executable has the server and all bundled plugins. Before main begins, the
// packages of all of them initialize their variables; a plugin then uses a small part
// of the program. On Linux this leaves two kinds of resident memory that nothing reads
// again: pages of the executable, about 40 MB, which the kernel maps in groups around
// each one that is used, and garbage of the heap.
//
// Release removes the mappings of these pages. They stay in the page cache, which
// processes of one executable share, and each use maps them again without a read from
// the disk. So the resident memory of a process shows what it works with; the machine
// has more free memory by the garbage only.
//
// Pages of the executable that the process has changed have their only copy in memory.
// They are kept: a mapping with one of them, as relocations and breakpoints of a
// debugger make, is left alone.
package startmemory

import (
	"runtime/debug"
	"time"
)

// Delay is how long after its start a process calls Release.
const Delay = 10 * time.Second

// Release collects garbage once and returns free memory to the system. It is safe at
// any time, and useful once, after the start. What cannot be released stays.
func Release() {
	debug.FreeOSMemory()
	releaseExecutable()
}
