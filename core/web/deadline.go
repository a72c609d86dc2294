package web

import (
	"errors"
	"os"
	"time"
)

// deadline is the read deadline of a connection, set lazily. The HTTP server
// sets a new one before every request, almost always a later one, and each
// costs as much as a small system call. While the one that is set is the
// earlier, it stays; when it strikes, the one that was wanted takes its place.
// It belongs to the goroutine that serves the connection.
type deadline struct{ set, wanted time.Time }

// want remembers t and reports whether it must be set now.
func (d *deadline) want(t time.Time) bool {
	d.wanted = t
	if !d.set.IsZero() && !t.IsZero() && !t.Before(d.set) {
		return false
	}
	d.set = t
	return true
}

// later reports whether err is a deadline that has struck too early, and takes
// the one that was wanted for the one that is set.
func (d *deadline) later(err error) bool {
	if err == nil || !d.wanted.After(d.set) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.set = d.wanted
	return true
}
