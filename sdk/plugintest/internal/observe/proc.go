package observe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WithVariable returns the processes whose environment has a variable, as NAME=value.
func WithVariable(variable string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	marker := []byte(variable + "\x00")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, marker) {
			if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Memory returns the resident bytes of the processes in a group.
func Memory(group int) (bytes int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		field := strings.Fields(rest) // from the third field on
		if len(field) > 21 && field[2] == strconv.Itoa(group) {
			pages, _ := strconv.Atoi(field[21])
			bytes += pages * os.Getpagesize()
		}
	}
	return bytes
}

// OpenFiles returns the number of files that a process has open.
func OpenFiles(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}
