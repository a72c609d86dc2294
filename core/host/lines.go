package host

import (
	"sync"
	"time"
)

// keptLines is how many lines of an instance's log are kept in memory.
const keptLines = 500

// Line is one line of a plugin's log. Secrets are covered.
type Line struct {
	At      time.Time      `json:"at"`
	Level   string         `json:"level"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

// ring keeps the last lines of one instance, whatever processes wrote them.
type ring struct {
	mu    sync.Mutex
	lines []Line
	next  int
}

func (r *ring) add(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < keptLines {
		r.lines = append(r.lines, l)
		return
	}
	r.lines[r.next] = l
	r.next = (r.next + 1) % keptLines
}

// last returns the last n lines, oldest first; never nil.
func (r *ring) last(n int) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := append(append([]Line{}, r.lines[r.next:]...), r.lines[:r.next]...)
	return out[max(0, len(out)-n):]
}

// lines returns the ring of an instance, which is made at its first use.
func (h *Host) lines(instance string) *ring {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[instance]
	if r == nil {
		r = &ring{}
		h.rings[instance] = r
	}
	return r
}

// Logs returns the last n lines that an instance wrote, oldest first, and
// whether there is an instance of that name.
func (h *Host) Logs(instance string, n int) ([]Line, bool) {
	if h.find(instance) == nil {
		return nil, false
	}
	return h.lines(instance).last(n), true
}

// forgetLines drops the ring of an instance that is no longer configured, unless
// there is a new one of that name.
func (h *Host) forgetLines(instance string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.instances {
		if s.name == instance {
			return
		}
	}
	delete(h.rings, instance)
}
