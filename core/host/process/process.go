// Package process runs plugin processes: start with the go-plugin handshake,
// resource limits, log pipes, usage, stop and exit status.
//
// A process is started from an exact argument list and environment, leads a
// process group of its own and is killed as a group, so that no descendant
// survives it. On Linux the kernel kills it when the host dies; elsewhere the SDK
// in the plugin watches its standard input. Launch returns after the handshake;
// when it fails, no process is left. Standard error and output pass through a
// LogPipe, which redacts secrets, limits the rate and keeps the last lines for
// the exit status.
//
// The package also owns the files of processes: RunDir is the private directory
// for sockets of one run of the host, VerifiedCopies are the checked copies of
// third-party executables. It knows nothing of the plugin protocol, of restarts
// or of instances: those belong to the packages conn and host.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/cgroup"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/text"
)

// socketDirKey is the variable with the directory for the socket of the process.
const socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"

// cpuWeight is the share of the processors that the control group of a plugin gets
// under load, against 100 of the server.
const cpuWeight = 50

// Process is one plugin process, from exec to reaped. It implements go-plugin's
// Runner, so that the host controls how the process is started, where its streams
// go and how it is killed.
//
// The kernel ties the parent-death signal to the thread that started the child, so
// that thread is kept as long as the child lives.
type Process struct {
	argv      []string
	env       []string
	limits    settings.Limits
	offline   bool   // without a network
	user      *User  // nil for the user of the server
	socketDir string // the directory of its socket, of no other process
	cmd       *exec.Cmd
	logs      *LogPipe
	stdout    *io.PipeReader // the handshake line, for go-plugin
	lines     *io.PipeWriter

	reaped  chan struct{} // closed when the process is reaped
	exited  chan struct{} // closed when its output is read, too
	exit    ExitStatus    // set before exited is closed
	streams sync.WaitGroup

	groups          *cgroup.Parent
	group           *cgroup.Group // nil without control groups
	oomKillsAtStart int64         // out-of-memory kills before the start

	mu       sync.Mutex
	pid      int
	gone     bool   // reaped: the pid may belong to another process
	early    string // the first line of standard output, when it is no handshake
	expected bool   // the host ends the process
}

var _ runner.Runner = (*Process)(nil)

// newProcess prepares a process that runs o.Argv with exactly env.
func newProcess(o Options, env []string) *Process {
	out, lines := io.Pipe()
	p := &Process{
		argv: o.Argv, env: env, limits: o.Limits, offline: o.Network == settings.NetworkNone, user: o.User, groups: o.Groups,
		logs: o.Logs, stdout: out, lines: lines, reaped: make(chan struct{}), exited: make(chan struct{}),
	}
	for _, variable := range env {
		if dir, ok := strings.CutPrefix(variable, socketDirKey+"="); ok {
			p.socketDir = dir
		}
	}
	if p.user != nil {
		p.env = p.user.environment(p.env)
	}
	return p
}

// Start starts the process. It must be called once only.
func (p *Process) Start(context.Context) error {
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
	go p.run(started, files)
	return <-started
}

// run starts the child, waits for it and reaps it, all on one thread.
func (p *Process) run(started chan<- error, files [6]*os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.oomKillsAtStart, _ = cgroup.OutOfMemoryKills()
	p.makeGroup()
	defer func() { p.group.Remove() }()
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
	limits := p.limits
	if p.group.LimitsMemory() {
		limits.MemoryBytes = 0
	}
	if err := restrict(p.cmd.Process.Pid, limits); err != nil {
		p.logs.log.Warn("plugin resource limit not applied", zap.Error(err))
	}
	p.streams.Go(func() { p.readStdout(files[2]) })
	p.streams.Go(func() { p.logs.read(files[4]) })
	started <- nil

	p.reap()
	close(p.reaped)
	if p.group.Kill() || p.killSurvivors() > 0 {
		p.logs.log.Warn("plugin left processes behind, which were killed")
	}
	// A descendant that left the group may still hold the pipes open.
	deadline := time.Now().Add(250 * time.Millisecond)
	_ = files[2].SetReadDeadline(deadline)
	_ = files[4].SetReadDeadline(deadline)
	p.streams.Wait()
	closeFiles([]*os.File{files[1], files[2], files[4]})
	p.exit = p.describeExit()
	close(p.exited)
}

// makeGroup makes the control group of the process, where there are any.
func (p *Process) makeGroup() {
	if p.groups == nil {
		return
	}
	var err error
	p.group, err = p.groups.New(cgroup.Limits{MemoryBytes: p.limits.MemoryBytes, Weight: cpuWeight})
	if err != nil {
		p.logs.log.Warn("plugin control group not made", zap.Error(err))
	}
}

// exec starts the child. It retries while the file is open for writing: a thread
// that forks at the same time holds the writer's descriptor for a moment.
func (p *Process) exec(stdin, stdout, stderr *os.File) error {
	executable := image(p.argv[0])
	var files []*os.File
	if p.user != nil {
		file, err := p.user.prepare(executable, p.socketDir)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		executable, files = inheritedFile, append(files, file)
	}
	for try := 0; ; try++ {
		p.cmd = exec.Command(executable)
		p.cmd.Args, p.cmd.ExtraFiles = p.argv, files
		p.cmd.Env, p.cmd.SysProcAttr = p.env, childAttributes()
		if p.user != nil {
			p.cmd.SysProcAttr.Credential = p.user.credential()
		}
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
		p.group.Hold(p.cmd.SysProcAttr)
		start := p.cmd.Start
		if p.offline {
			withoutNetwork(p.cmd.SysProcAttr)
			start = func() error { return startInNamespace(p.cmd.Start) }
		}
		err := start()
		if !errors.Is(err, syscall.ETXTBSY) || try == 20 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// readStdout passes a handshake line to go-plugin and everything else to the log.
func (p *Process) readStdout(r io.Reader) {
	defer func() { _ = p.lines.Close() }()
	in := bufio.NewReaderSize(r, 8<<10)
	line, err := in.ReadSlice('\n')
	if len(line) == 0 {
		// The process is ending. go-plugin kills it as soon as the stream is
		// closed, which would hide the exit code.
		select {
		case <-p.reaped:
		case <-time.After(200 * time.Millisecond):
		}
		return
	}
	if first := strings.TrimSpace(string(line)); strings.Count(first, "|") < 4 || strings.IndexByte(first, '|') > 3 {
		p.mu.Lock()
		p.early = text.Ellipsis(first, 40)
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

// signal sends a signal to the process group, unless the process is reaped.
func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 && !p.gone {
		_ = syscall.Kill(-p.pid, sig)
	}
}

// Terminate sends SIGTERM, and SIGKILL after grace or when ctx ends. It returns
// when the process is reaped.
func (p *Process) Terminate(ctx context.Context, grace time.Duration) {
	p.ExpectExit()
	p.signal(syscall.SIGTERM)
	if !WaitClosed(ctx, p.exited, grace) {
		p.signal(syscall.SIGKILL)
	}
	<-p.exited
}

// WaitClosed waits until done is closed, for at most d and until ctx ends. It
// reports whether done was closed.
func WaitClosed(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
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

// ExpectExit marks the next exit as caused by the host. It does not mark that of a process
// that has ended by itself and is not reaped yet, so that its exit status keeps the cause.
func (p *Process) ExpectExit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expectExit()
}

// expectExit is ExpectExit. The caller holds the lock, so that reap cannot free the pid.
func (p *Process) expectExit() {
	if !p.expected && !p.gone {
		p.expected = p.pid == 0 || !isZombie(p.pid)
	}
}

// Exited is closed when the process is reaped and its output is read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit returns how the process ended. It must be called after Exited is closed.
func (p *Process) Exit() ExitStatus { return p.exit }

// PID returns the process id of a started process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Wait returns when the process is reaped.
func (p *Process) Wait(context.Context) error {
	<-p.exited
	return nil
}

// Kill kills the process group.
func (p *Process) Kill(context.Context) error {
	p.ExpectExit()
	p.signal(syscall.SIGKILL)
	return nil
}

// Stdout returns the handshake line.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Stderr is empty: the log pipe reads standard error.
func (p *Process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the path of the executable.
func (p *Process) Name() string { return p.argv[0] }

// ID returns the process id.
func (p *Process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.pid)
}

// Diagnose adds nothing: Launch makes its own message.
func (p *Process) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address of the handshake. It fails for any other than
// a socket below the directory that the process was given: the host must not
// connect to what a plugin names.
func (p *Process) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || !below(p.socketDir, address) {
		return "", "", fmt.Errorf("the handshake names %s %q, which is no socket in %s", network, text.Ellipsis(address, 100), socketDirKey)
	}
	return network, address, nil
}

// below reports whether path is a socket below dir, also when links are followed.
func below(dir, path string) bool {
	dir, dirErr := filepath.EvalSymlinks(dir)
	path, pathErr := filepath.EvalSymlinks(path)
	if dirErr != nil || pathErr != nil {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// HostToPlugin returns its arguments.
func (p *Process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
