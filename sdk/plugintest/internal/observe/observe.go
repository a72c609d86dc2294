// Package observe looks at a process from outside: what it logs, the memory and the
// files that it holds, and the processes that outlive it.
package observe

import (
	"bytes"
	"strings"
	"time"
)

const (
	// KeptLines is how many lines the server keeps of one second by default: a burst of
	// 100 and 100 a second. A long line counts as one for each started KiB.
	KeptLines = 200
	// KeptLine is where the server cuts a line.
	KeptLine = 64 << 10
	// KeptBytes is how many bytes a second cost the server no noticeable time to read.
	KeptBytes = 4 << 20
)

// Log keeps the end of what a process printed, and how much that was. Its methods are
// not safe for concurrent use.
type Log struct {
	// MostLines and MostBytes were printed in one second, LongestLine has its bytes. A
	// line counts as one for each started KiB.
	MostLines, MostBytes, LongestLine int

	end         bytes.Buffer
	second      int64 // in which lines and size are counted
	lines, size int
	line        int // bytes so far
}

// Add takes what was printed at a time.
func (l *Log) Add(part []byte, now time.Time) {
	if l.second != now.Unix() {
		l.second, l.lines, l.size = now.Unix(), 0, 0
	}
	l.size += len(part)
	l.MostBytes = max(l.MostBytes, l.size)
	rest := part
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		l.lines += 1 + max(l.line+i-1, 0)>>10
		l.LongestLine = max(l.LongestLine, l.line+i)
		l.line, rest = 0, rest[i+1:]
	}
	l.line += len(rest)
	l.LongestLine, l.MostLines = max(l.LongestLine, l.line), max(l.MostLines, l.lines)
	l.end.Write(part[max(0, len(part)-8<<10):])
	if l.end.Len() > 16<<10 {
		kept := bytes.Clone(l.end.Bytes()[l.end.Len()-8<<10:])
		l.end.Reset()
		l.end.Write(kept)
	}
}

// String returns the end of what was printed.
func (l *Log) String() string { return l.end.String() }

// Clip cuts what a plugin says after 120 bytes.
func Clip(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}
