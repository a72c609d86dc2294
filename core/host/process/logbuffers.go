package process

import "sync"

// LogBuffers keeps the log buffer of each instance. The zero value is empty. Its methods
// are safe for concurrent use.
type LogBuffers struct {
	mu      sync.Mutex
	buffers map[string]*LogBuffer
}

// Of returns the buffer of an instance and makes it if needed.
func (l *LogBuffers) Of(instance string) *LogBuffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buffers[instance]
	if b == nil {
		if l.buffers == nil {
			l.buffers = map[string]*LogBuffer{}
		}
		b = &LogBuffer{}
		l.buffers[instance] = b
	}
	return b
}

// Remove removes the buffer of an instance.
func (l *LogBuffers) Remove(instance string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.buffers, instance)
}
