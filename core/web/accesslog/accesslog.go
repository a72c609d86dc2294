// Package accesslog selects the requests that are logged, and removes keys from
// their log lines.
package accesslog

import (
	"math"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Requests that are logged. Server errors (5xx) are always logged; of failed
// public requests (4xx, 503) at most a hundred in a second. Of successful public
// requests and of successful reads of the management API, each apart, a sample is.
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
	count [2]atomic.Uint64 // of public requests and of reads

	second  atomic.Int64 // of the newest failed public request
	failed  atomic.Int64 // failed public requests in that second
	skipped atomic.Int64 // not logged since the last call of Skipped
}

// maxFailed is the number of failed public requests that are logged in a second: a
// flood without a key must not fill the disk.
const maxFailed = 100

// Kind is the kind of a request.
type Kind int

// The kinds of requests. Public ones are those of client libraries; the others are of
// the management API.
const (
	Public Kind = iota
	Read
	Write
)

// roleMissing is the code of core/roles for a request that belongs to another server.
const roleMissing = "role_missing"

// KindOf returns the kind of a request that was answered with a code. One that belongs
// to another server is public, because no key was checked.
func KindOf(method, code string, public bool) Kind {
	switch {
	case public, code == roleMissing:
		return Public
	case method == "GET", method == "HEAD", method == "OPTIONS":
		return Read
	}
	return Write
}

// Level returns the level of the line of a request: a warning if the server is
// saturated, or if the request belongs to another server.
func Level(status int, code string) zapcore.Level {
	switch {
	case code == roleMissing, strings.HasSuffix(code, "_saturated"):
		return zapcore.WarnLevel
	case status >= 500:
		return zapcore.ErrorLevel
	}
	return zapcore.InfoLevel
}

// NewSelector selects which, one of the constants, and one of every successful
// public requests, and successful reads; 0 and 1 select all of them.
func NewSelector(which string, every int) *Selector {
	return &Selector{which: which, every: uint64(every)}
}

// Selects reports whether a request is logged.
func (l *Selector) Selects(kind Kind, status int) bool {
	switch {
	case status >= 500 && status != 503:
		return true
	case status < 500 && l.which == ServerErrors:
		return false
	case status >= 400:
		return kind != Public || l.selectsFailed(time.Now().Unix())
	case l.which == Errors:
		return false
	case kind == Write:
		return true
	case l.which == Management && kind == Public:
		return false
	}
	return l.every < 2 || l.count[kind].Add(1)%l.every == 1
}

// selectsFailed reports whether a failed public request of a second is logged.
func (l *Selector) selectsFailed(second int64) bool {
	if l.second.Swap(second) != second {
		l.failed.Store(0)
	}
	if l.failed.Add(1) <= maxFailed {
		return true
	}
	l.skipped.Add(1)
	return false
}

// Skipped returns the number of failed public requests that were not logged since
// the last call, because there were too many in a second.
func (l *Selector) Skipped() int64 {
	if l.skipped.Load() == 0 {
		return 0
	}
	return l.skipped.Swap(0)
}

// Duration returns the duration of a request in milliseconds, which log stores can
// sum.
func Duration(d time.Duration) zap.Field {
	return zap.Float64("duration_ms", math.Round(float64(d)/1000)/1000)
}

// Method returns the method of a request without a route, at most 20 bytes of it.
func Method(m string) zap.Field { return zap.String("method", strings.Clone(m[:min(len(m), 20)])) }

var keyPattern = regexp.MustCompile(`ph[a-z]_[A-Za-z0-9_-]+`)

// Redact returns a path without keys, at most 200 bytes of it.
func Redact(path string) string {
	if len(path) > 200 {
		path = path[:200]
	}
	return keyPattern.ReplaceAllString(path, "(key)")
}
