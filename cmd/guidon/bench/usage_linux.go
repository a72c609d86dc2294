package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used.
type usage struct {
	cpu                   time.Duration // since its start
	resident, residentMax int64         // bytes
}

// tick is the unit of CPU times in /proc, 10 ms on every Linux (USER_HZ).
const tick = 10 * time.Millisecond

// usageOf reads the usage of a process from /proc; nothing for pid 0.
func usageOf(pid int) (u usage, err error) {
	if pid == 0 {
		return u, nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name of the process, in parentheses, may contain spaces: fields 14 and 15 are
	// the 12th and 13th after it (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(n) * tick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.resident = n << 10
		case "VmHWM":
			u.residentMax = n << 10
		}
	}
	return u, nil
}
