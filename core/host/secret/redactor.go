package secret

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// Redactor replaces secrets in text that leaves the host. Its zero value redacts
// nothing. Its methods are safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer]
}

// Add redacts value from now on. Values shorter than four bytes are ignored: their
// redaction would hide ordinary words and protect nothing.
func (r *Redactor) Add(value string) {
	if len(value) < 4 {
		return
	}
	values := []string{value}
	if quoted, err := json.Marshal(value); err == nil && string(quoted[1:len(quoted)-1]) != value {
		values = append(values, string(quoted[1:len(quoted)-1]))
	}
	r.addValues(values)
}

// AddAll redacts the values of other, too.
func (r *Redactor) AddAll(other *Redactor) {
	other.mu.Lock()
	values := slices.Clone(other.values)
	other.mu.Unlock()
	if len(values) > 0 {
		r.addValues(values)
	}
}

func (r *Redactor) addValues(values []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if !slices.Contains(r.values, v) {
			r.values = append(r.values, v)
		}
	}
	// Longest first, so that a value inside another one leaves no rest.
	sort.Slice(r.values, func(i, j int) bool { return len(r.values[i]) > len(r.values[j]) })
	pairs := make([]string, 0, 2*len(r.values))
	for _, v := range r.values {
		pairs = append(pairs, v, "[secret]")
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// Empty reports whether Redact returns every text unchanged.
func (r *Redactor) Empty() bool { return r == nil || r.replacer.Load() == nil }

// String hides the values from formatted output.
func (r *Redactor) String() string { return "[secrets]" }

// Redact returns text with each value replaced by [secret]. A nil Redactor returns
// text unchanged.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	if replacer := r.replacer.Load(); replacer != nil {
		return replacer.Replace(text)
	}
	return text
}
