package host

import (
	"sync"

	"github.com/guidonhq/guidon/core/host/process"
)

// logBuffers keeps the log buffer of each instance. The zero value is empty. Its methods
// are safe for concurrent use.
type logBuffers struct {
	mu      sync.Mutex
	buffers map[string]*process.LogBuffer
}

// of returns the buffer of an instance and makes it if needed.
func (l *logBuffers) of(instance string) *process.LogBuffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buffers[instance]
	if b == nil {
		if l.buffers == nil {
			l.buffers = map[string]*process.LogBuffer{}
		}
		b = &process.LogBuffer{}
		l.buffers[instance] = b
	}
	return b
}

// remove removes the buffer of an instance.
func (l *logBuffers) remove(instance string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.buffers, instance)
}

// Logs returns the last n log lines of an instance, oldest first, and whether the
// instance exists.
func (h *Host) Logs(instance string, n int) ([]process.Line, bool) {
	if h.find(instance) == nil {
		return nil, false
	}
	return h.logs.of(instance).Last(n), true
}
