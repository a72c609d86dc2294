package sqlitepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	pages = arena{reserve: reserve, discard: discard}
	other sqlite3.Tsqlite3_mem_methods // the allocator of libc
)

// init replaces the allocator of SQLite. If SQLite refuses, the allocator of libc
// stays, which needs more memory.
func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	size := int(unsafe.Sizeof(other))
	at := tls.Alloc(size + 8)
	defer tls.Free(size + 8)
	args := libc.VaList(at+uintptr(size), at)
	if sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_GETMALLOC, args) != sqlite3.SQLITE_OK {
		return
	}
	methods := (*sqlite3.Tsqlite3_mem_methods)(pointer(at))
	other = *methods
	methods.FxMalloc, methods.FxFree = address(xMalloc), address(xFree)
	methods.FxRealloc, methods.FxSize = address(xRealloc), address(xSize)
	args = libc.VaList(at+uintptr(size), at)
	sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MALLOC, args)
}

func xMalloc(tls *libc.TLS, n int32) uintptr {
	if n > minBytes && n <= slotBytes {
		if p := pages.alloc(); p != 0 {
			return p
		}
	}
	return function[func(*libc.TLS, int32) uintptr](other.FxMalloc)(tls, n)
}

func xFree(tls *libc.TLS, p uintptr) {
	if pages.owns(p) {
		pages.release(p)
		return
	}
	function[func(*libc.TLS, uintptr)](other.FxFree)(tls, p)
}

func xSize(tls *libc.TLS, p uintptr) int32 {
	if pages.owns(p) {
		return slotBytes
	}
	return function[func(*libc.TLS, uintptr) int32](other.FxSize)(tls, p)
}

// xRealloc moves an allocation that grows out of its slot. One that grows to the size
// of a slot stays where it is: it is no page.
func xRealloc(tls *libc.TLS, p uintptr, n int32) uintptr {
	if !pages.owns(p) {
		return function[func(*libc.TLS, uintptr, int32) uintptr](other.FxRealloc)(tls, p, n)
	}
	if n <= slotBytes {
		return p
	}
	to := function[func(*libc.TLS, int32) uintptr](other.FxMalloc)(tls, n)
	if to != 0 {
		copy(unsafe.Slice((*byte)(pointer(to)), slotBytes), unsafe.Slice((*byte)(pointer(p)), slotBytes))
		pages.release(p)
	}
	return to
}

// address returns a function as the C code of SQLite calls it. f is no closure.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function is the reverse of address.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{address})) }

// reserve takes addresses; the system gives memory to those that are used.
func reserve(bytes int) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	return uintptr(p), err
}

func discard(address uintptr, bytes int) {
	_ = unix.Madvise(unsafe.Slice((*byte)(pointer(address)), bytes), unix.MADV_DONTNEED)
}
