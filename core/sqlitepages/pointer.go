package sqlitepages

import "unsafe"

// pointer converts an address outside of the Go heap.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
