package listener

import (
	"errors"
	"os"
	"time"
)

// deadline is a read deadline that is set lazily. The HTTP server moves the
// deadline before every request, almost always to a later time, and each move
// costs a small system call. An earlier deadline therefore stays set; when it
// expires, the wanted one replaces it. It belongs to the goroutine that serves
// the connection.
type deadline struct{ set, wanted time.Time }

// want records t and reports whether it must be set now.
func (d *deadline) want(t time.Time) bool {
	d.wanted = t
	if !d.set.IsZero() && !t.IsZero() && !t.Before(d.set) {
		return false
	}
	d.set = t
	return true
}

// postpone reports whether err is the expiry of a deadline before the wanted
// one, and makes the wanted one the set one.
func (d *deadline) postpone(err error) bool {
	if err == nil || !d.wanted.After(d.set) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.set = d.wanted
	return true
}
