package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// userTicks is the unit of CPU time in /proc: ticks a second (USER_HZ).
const userTicks = 100

// Usage returns the resident memory and the CPU time of a process. ok is false
// when the process has ended.
func Usage(pid int) (rss int64, cpu time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The program name is in parentheses and may contain any character.
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
