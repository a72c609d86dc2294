package startmemory

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// span is a range of addresses.
type span struct{ start, end uintptr }

// releaseExecutable removes the mappings of unchanged pages of the executable.
func releaseExecutable() {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for _, s := range unchanged(f, path) {
		_ = unix.Madvise(unsafe.Slice((*byte)(pointer(s.start)), s.end-s.start), unix.MADV_DONTNEED)
	}
}

// unchanged returns the mappings of the file at path that the process cannot write to
// and in which it has no page of its own. smaps is in the format of /proc/PID/smaps.
func unchanged(smaps io.Reader, path string) (out []span) {
	var current span
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		if bounds, rest, ok := strings.Cut(line, " "); !strings.HasSuffix(bounds, ":") {
			current = span{}
			readOnly := strings.HasPrefix(rest, "r-xp ") || strings.HasPrefix(rest, "r--p ")
			if ok && readOnly && strings.HasSuffix(line, " "+path) {
				current = parseSpan(bounds)
			}
			continue
		}
		if size, ok := strings.CutPrefix(line, "Anonymous:"); ok && current.end > 0 && strings.TrimSpace(size) == "0 kB" {
			out = append(out, current)
		}
	}
	return out
}

// parseSpan reads "start-end" in hexadecimal; the zero span if it is not that.
func parseSpan(text string) span {
	from, to, _ := strings.Cut(text, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil || end <= start {
		return span{}
	}
	return span{uintptr(start), uintptr(end)}
}

// pointer converts an address outside of the Go heap.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
