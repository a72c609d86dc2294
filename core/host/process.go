package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/hashicorp/go-plugin/runner"
	"go.uber.org/zap"
)

// process is one plugin process, from exec to reaped. It implements go-plugin's
// Runner, so that the host and nobody else decides how a process is started,
// what its streams are connected to, and how it is killed.
//
// The process leads a group of its own, which is killed as a whole, and on Linux
// it dies with the host. That last promise of the kernel is tied to the thread
// that made the child, so that thread is kept for as long as the child lives.
type process struct {
	argv   []string
	env    []string
	limits settings.Limits
	cmd    *exec.Cmd
	logs   *logBridge
	stdout *io.PipeReader // the handshake line, for go-plugin
	lines  *io.PipeWriter

	reaped chan struct{} // closed when the process is reaped
	exited chan struct{} // closed when its output is read, too
	exit   ExitStatus    // set before exited is closed

	mu      sync.Mutex
	pid     int
	gone    bool   // reaped: the pid may belong to somebody else
	early   string // what was printed where the handshake line should have been
	expect  bool
	ooms    int64 // kills for want of memory before it was started
	streams sync.WaitGroup
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares a process that runs argv with exactly env.
func newProcess(argv, env []string, limits settings.Limits, logs *logBridge) *process {
	out, lines := io.Pipe()
	return &process{argv: argv, env: env, limits: limits, logs: logs, stdout: out, lines: lines, reaped: make(chan struct{}), exited: make(chan struct{})}
}

// Start starts the process. It is never called twice.
func (p *process) Start(context.Context) error {
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(files[:])
			return fmt.Errorf("make a pipe: %w", err)
		}
		files[i], files[i+1] = r, w
	}
	started := make(chan error)
	go p.own(started, files)
	return <-started
}

// own starts the child, waits for it and reaps it, all on one thread.
func (p *process) own(started chan<- error, files [6]*os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.ooms, _ = outOfMemoryKills()
	err := p.exec(files[0], files[3], files[5])
	closeFiles([]*os.File{files[0], files[3], files[5]})
	if err != nil {
		closeFiles([]*os.File{files[1], files[2], files[4]})
		_ = p.lines.CloseWithError(err)
		p.exit = ExitStatus{Code: -1, At: time.Now()}
		p.mu.Lock()
		p.gone = true
		p.mu.Unlock()
		close(p.exited)
		started <- err
		return
	}
	p.mu.Lock()
	p.pid = p.cmd.Process.Pid
	p.mu.Unlock()
	if err := restrict(p.cmd.Process.Pid, p.limits); err != nil {
		p.logs.log.Warn("plugin runs without some of its limits", zap.Error(err))
	}
	p.streams.Go(func() { p.readStdout(files[2]) })
	p.streams.Go(func() { p.logs.read(files[4]) })
	started <- nil

	p.reap()
	close(p.reaped)
	// Somebody who left the group may still hold the pipes open.
	deadline := time.Now().Add(250 * time.Millisecond)
	_ = files[2].SetReadDeadline(deadline)
	_ = files[4].SetReadDeadline(deadline)
	p.streams.Wait()
	closeFiles([]*os.File{files[1], files[2], files[4]})
	p.exit = p.describeExit()
	close(p.exited)
}

// exec starts the child, and tries again when the file is still being written:
// another thread that forks just then holds the writer's descriptor a moment.
func (p *process) exec(stdin, stdout, stderr *os.File) error {
	for try := 0; ; try++ {
		p.cmd = exec.Command(image(p.argv[0]))
		p.cmd.Args = p.argv
		p.cmd.Env, p.cmd.SysProcAttr = p.env, childAttributes()
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
		err := p.cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || try == 20 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// readStdout gives the first line to go-plugin if it is a handshake line, and
// everything else to the log.
func (p *process) readStdout(r io.Reader) {
	defer func() { _ = p.lines.Close() }()
	in := bufio.NewReaderSize(r, 8<<10)
	line, err := in.ReadSlice('\n')
	if len(line) == 0 {
		// It is ending: go-plugin, told of it, would kill it and so hide why.
		select {
		case <-p.reaped:
		case <-time.After(200 * time.Millisecond):
		}
		return
	}
	if text := strings.TrimSpace(string(line)); strings.Count(text, "|") < 4 || strings.IndexByte(text, '|') > 3 {
		p.mu.Lock()
		p.early = clip(text, 40)
		p.mu.Unlock()
		_ = p.lines.Close()
		p.logs.line(line, "stdout")
	} else if _, werr := p.lines.Write(line); werr != nil {
		return
	}
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		p.logs.readFrom(in, "stdout")
	}
}

// signal sends a signal to the whole group, unless the process is reaped.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 && !p.gone {
		_ = syscall.Kill(-p.pid, sig)
	}
}

// end makes sure that the process is gone: it asks with SIGTERM, and kills after
// grace, or at once when ctx ends. It returns when the process is reaped.
func (p *process) end(ctx context.Context, grace time.Duration) {
	p.expected()
	p.signal(syscall.SIGTERM)
	if !p.within(ctx, grace) {
		p.signal(syscall.SIGKILL)
	}
	<-p.exited
}

// within waits for the exit and reports whether it came in time.
func (p *process) within(ctx context.Context, d time.Duration) bool {
	return closedWithin(ctx, p.exited, d)
}

// closedWithin waits until done is closed, for at most d and until ctx ends, and
// reports whether it was.
func closedWithin(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// expected notes that the host itself ends the process.
func (p *process) expected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect = p.expect || !p.gone
}

// Wait returns when the process is reaped; nothing else counts as its end.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return nil
}

// Kill kills the group.
func (p *process) Kill(context.Context) error {
	p.expected()
	p.signal(syscall.SIGKILL)
	return nil
}

// Stdout is the handshake line.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr is empty: the log bridge reads the true one.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name is the path of the executable.
func (p *process) Name() string { return p.argv[0] }

// ID is the process id.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.pid)
}

// Diagnose adds nothing: the host makes its own message.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost changes nothing: both live in the same file system.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// clip returns at most n bytes of text, for a message.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
