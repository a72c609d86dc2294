// Package scan bounds how many scans run at once and in which order they start.
//
// A scan is a read whose cost grows with a table: a search for persons, a count
// over events, a cohort, an export. A few of them occupy every processor and every
// connection of a small server. The Limiter has a fixed number of places. A scan
// waits for one, in a queue of its project: the project with the fewest running
// scans is next, and of equal ones that which waits longest. One project cannot
// hold all places for long, however many scans it starts: a scan of many steps
// gives its place away between two of them while others wait.
//
// Places bound the number of scans, not their speed. A scan that computes in this
// process shares the processors with requests that clients wait for, and the Go
// scheduler looks for network traffic only when a processor is idle. Pace
// therefore sleeps briefly after each millisecond of work.
//
// A scan of a request waits for a limited time in a queue of limited length, and
// then fails with an Unavailable fault that says when to retry. A scan in the
// background waits until its context ends, in a queue of its own per project. Scans
// in the background leave one of several places to requests. A scan of several
// goroutines needs one place: what it begins with its own context uses that place.
// Share does the same for parts that begin on their own, and bounds how many run at once.
package scan

import (
	"errors"
	"runtime"
	"time"
)

// Config bounds the scans of a server.
type Config struct {
	// Places is how many scans run at once. 0 stands for one less than the processors
	// of the server, between one and two.
	Places int `koanf:"places"`
	// Queue is how many scans of requests may wait per project; more are refused.
	Queue int `koanf:"queue"`
	// MaxWait is how long a scan of a request waits for a place before it is refused.
	MaxWait time.Duration `koanf:"max_wait"`
}

// DefaultConfig leaves a processor to other work. Requests wait ten seconds, 32 per
// project.
func DefaultConfig() Config {
	return Config{Queue: 32, MaxWait: 10 * time.Second}
}

// WithPlaces returns c with the number of places that 0 stands for.
func (c Config) WithPlaces() Config {
	if c.Places == 0 {
		c.Places = max(1, min(2, runtime.GOMAXPROCS(0)-1))
	}
	return c
}

// Validate reports the first invalid setting.
func (c Config) Validate() error {
	switch {
	case c.Places < 0 || c.Places > 64:
		return errors.New("scans.places must be between 0 and 64 (0 depends on the processors)")
	case c.Queue < 0:
		return errors.New("scans.queue must not be negative (0 lets no scan wait)")
	case c.MaxWait < 0:
		return errors.New("scans.max_wait must not be negative (0 lets no scan wait)")
	}
	return nil
}
