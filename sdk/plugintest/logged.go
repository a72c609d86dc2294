package plugintest

import (
	"bytes"
	"time"
)

const (
	// keptLines is how many lines a second the server keeps by default.
	keptLines = 1000
	// keptLine is where the server cuts a line.
	keptLine = 64 << 10
	// keptBytes is how many bytes a second cost the server no noticeable time to read.
	keptBytes = 4 << 20
)

// logged keeps the end of what a process printed, and how much that was.
type logged struct {
	end           bytes.Buffer
	second        int64 // in which lines and size are counted
	lines, size   int
	mostLines     int // in one second
	mostSize      int
	line, longest int // bytes
}

func (l *logged) add(part []byte, now time.Time) {
	if l.second != now.Unix() {
		l.second, l.lines, l.size = now.Unix(), 0, 0
	}
	l.size += len(part)
	l.mostSize = max(l.mostSize, l.size)
	rest := part
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		l.lines++
		l.longest = max(l.longest, l.line+i)
		l.line, rest = 0, rest[i+1:]
	}
	l.line += len(rest)
	l.longest, l.mostLines = max(l.longest, l.line), max(l.mostLines, l.lines)
	l.end.Write(part[max(0, len(part)-8<<10):])
	if l.end.Len() > 16<<10 {
		kept := bytes.Clone(l.end.Bytes()[l.end.Len()-8<<10:])
		l.end.Reset()
		l.end.Write(kept)
	}
}

// String returns the end of what was printed.
func (l *logged) String() string { return l.end.String() }
