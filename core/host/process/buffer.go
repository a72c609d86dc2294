package process

import (
	"sync"
	"time"
)

// bufferLines is how many log lines of an instance are kept in memory.
const bufferLines = 500

// Line is one line of a plugin's log, redacted.
type Line struct {
	At      time.Time      `json:"at"`
	Level   string         `json:"level"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

// LogBuffer keeps the last lines of one instance across its processes. The zero
// value is empty. Its methods are safe for concurrent use.
type LogBuffer struct {
	mu    sync.Mutex
	lines []Line
	next  int
}

func (b *LogBuffer) add(l Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) < bufferLines {
		b.lines = append(b.lines, l)
		return
	}
	b.lines[b.next] = l
	b.next = (b.next + 1) % bufferLines
}

// Last returns the last n lines, oldest first; never nil.
func (b *LogBuffer) Last(n int) []Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := append(append([]Line{}, b.lines[b.next:]...), b.lines[:b.next]...)
	return out[max(0, len(out)-n):]
}
