package sdk

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The process's own standard streams, kept before anything replaces them.
var (
	parent    = os.Getppid()
	ownStderr = os.Stderr
	// handshakePipe is where the host waits for the handshake line; nil when
	// that is still standard output.
	handshakePipe *os.File
)

const (
	termGrace  = 5 * time.Second
	parentPoll = time.Second
)

// init runs before the packages of the program that import this one: from here
// on nothing the program prints can break the handshake line.
func init() {
	if os.Getenv(CookieKey) == CookieValue {
		claimStdout()
	}
}

// lendOutput makes go-plugin print the handshake line to the host.
func lendOutput() {
	if handshakePipe != nil {
		os.Stdout = handshakePipe
	}
}

// takeBackOutput undoes what go-plugin does to the standard streams after the
// handshake: it would carry the output over the same connection as the
// calls. Standard error reaches the host anyway, and also when all else fails.
func takeBackOutput() {
	os.Stdout, os.Stderr = ownStderr, ownStderr
}

// watch ends the process when the host is gone or on SIGTERM.
func (s *server) watch() {
	signal.Ignore(os.Interrupt)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go s.watchSignals(term)
	go s.watchParent()
	if os.Getenv(WatchKey) == "stdin" {
		go s.watchStdin()
	}
}

// watchSignals answers SIGTERM. A service manager sends it to the host and to
// its plugins at once, so the host is given time to drain and stop us properly.
func (s *server) watchSignals(term <-chan os.Signal) {
	<-term
	select {
	case <-s.drained:
	case <-time.After(termGrace):
	}
	s.exit(termGrace, 0)
}

// watchParent notices that another process has become our parent.
func (s *server) watchParent() {
	for range time.Tick(parentPoll) {
		if os.Getppid() != parent {
			s.exit(time.Second, 3)
		}
	}
}

// watchStdin notices that the host's end of our standard input is closed.
func (s *server) watchStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.exit(time.Second, 3)
}

// exit closes the instances, for as long as grace allows, and ends the process.
func (s *server) exit(grace time.Duration, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s.closeAll(ctx)
	os.Exit(code)
}
