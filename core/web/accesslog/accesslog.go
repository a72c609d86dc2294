// Package accesslog selects the requests that are logged, and removes keys from
// what is logged of them.
package accesslog

import (
	"regexp"
	"sync/atomic"
)

// Requests that are logged. Server errors (5xx) are always logged.
const (
	All          = "all"     // every request
	Management   = "manage"  // management requests, and public ones that failed
	Errors       = "refused" // requests that were answered with 4xx or 5xx
	ServerErrors = "broken"  // requests that were answered with 5xx
)

// Selector selects the requests that are logged. It is safe for concurrent use.
type Selector struct {
	which string
	every uint64
	count atomic.Uint64
}

// NewSelector selects which, one of the constants, and one of every successful
// public requests; 0 and 1 select all of them.
func NewSelector(which string, every int) *Selector {
	return &Selector{which: which, every: uint64(every)}
}

// Selects reports whether a request is logged.
func (l *Selector) Selects(public bool, status int) bool {
	switch {
	case status >= 500:
		return true
	case l.which == ServerErrors:
		return false
	case status >= 400:
		return true
	case l.which == Errors:
		return false
	case !public:
		return true
	case l.which == Management:
		return false
	}
	return l.every < 2 || l.count.Add(1)%l.every == 1
}

var keyPattern = regexp.MustCompile(`ph[a-z]_[A-Za-z0-9_-]+`)

// Redact returns a path without keys, at most 200 bytes of it.
func Redact(path string) string {
	if len(path) > 200 {
		path = path[:200]
	}
	return keyPattern.ReplaceAllString(path, "(key)")
}
