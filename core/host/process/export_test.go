package process

import (
	"context"
	"io"
	"syscall"
	"time"
)

// Start starts a process without a handshake.
func Start(ctx context.Context, o Options) (*Process, error) {
	p := newProcess(o, o.Env)
	return p, p.Start(ctx)
}

// ExpectExitOfKilled kills the process, calls ExpectExit before the process can be reaped,
// and returns how it ended.
func (p *Process) ExpectExitOfKilled() ExitStatus {
	p.mu.Lock()
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	for !isZombie(p.pid) {
		time.Sleep(time.Millisecond)
	}
	p.expectExit()
	p.mu.Unlock()

	<-p.exited
	return p.exit
}

// Line processes one line of standard error.
func (b *LogPipe) Line(line []byte) { b.line(line, "stderr") }

// Read copies a whole stream.
func (b *LogPipe) Read(r io.Reader) { b.read(r) }

// End ends the stream.
func (b *LogPipe) End() { b.flush() }

// Tail returns the last lines.
func (b *LogPipe) Tail() []string { return b.tail() }
