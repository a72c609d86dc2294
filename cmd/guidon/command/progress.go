package command

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Progress prints what a command waits for, for how long, and how far it has come, once
// that takes longer than a second. It prints nothing without a terminal.
type Progress struct {
	end         chan struct{}
	done        sync.WaitGroup
	bytes, size atomic.Int64
}

// StartProgress starts the progress. Stop ends it.
func (e *Env) StartProgress(what string) *Progress {
	p := &Progress{end: make(chan struct{})}
	if !IsTerminal(e.ErrOut) {
		return p
	}
	begin := time.Now()
	p.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for shown := false; ; shown = true {
			select {
			case <-p.end:
				if shown {
					fmt.Fprint(e.ErrOut, "\r\x1b[K")
				}
				return
			case <-tick.C:
				fmt.Fprintf(e.ErrOut, "\r\x1b[K%s: %s%s", what, p.text(), time.Since(begin).Round(time.Second))
			}
		}
	})
	return p
}

// Report sets how many bytes are done, and of how many; 0 is unknown. It may be called
// concurrently.
func (p *Progress) Report(done, total int64) {
	p.bytes.Store(done)
	p.size.Store(total)
}

// text returns the progress in bytes with a comma; "" without a report.
func (p *Progress) text() string {
	done, total := p.bytes.Load(), p.size.Load()
	switch {
	case done == 0:
		return ""
	case total == 0:
		return output.Size(done) + ", "
	}
	return fmt.Sprintf("%d %%, %s of %s, ", 100*done/total, output.Size(done), output.Size(total))
}

// Stop erases the line and returns when nothing more is printed.
func (p *Progress) Stop() {
	close(p.end)
	p.done.Wait()
}

// IsTerminal reports whether v is a file that is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// IsStatus reports whether a server refused with the status.
func IsStatus(err error, status int) bool {
	refused, ok := errors.AsType[*remote.Error](err)
	return ok && refused.Status == status
}

// NotFound returns an error with the exit code of an object that does not exist.
func NotFound(format string, args ...any) error { return remote.NotFound(format, args...) }
