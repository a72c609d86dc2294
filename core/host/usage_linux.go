package host

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// userTicks is how many ticks of CPU time the kernel reports a second to every
// program, whatever its own clock.
const userTicks = 100

// usage is the memory and the CPU time of a process, if it is there.
func usage(pid int) (rss int64, cpu time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name of the program is in parentheses and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return 0, 0, false
	}
	var n [3]int64
	for i, at := range []int{11, 12, 21} { // utime, stime, rss
		if n[i], err = strconv.ParseInt(string(fields[at]), 10, 64); err != nil {
			return 0, 0, false
		}
	}
	return n[2] * int64(os.Getpagesize()), time.Duration(n[0]+n[1]) * time.Second / userTicks, true
}
