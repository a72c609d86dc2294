// Package candidate runs the plugin that the conformance kit judges, as the server
// does: a copy of the one file with the environment of a plugin, its handshake line, a
// connection, and what it writes.
package candidate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// Command is a plugin to start.
type Command struct {
	// Args is the command line.
	Args []string
	// Env is the environment, as KEY=value; nothing else is handed on but what the
	// server hands on.
	Env []string
	// Dir is a directory for sockets and temporary files.
	Dir string
}

// startLimit is how long a plugin may take to shake hands.
const startLimit = 15 * time.Second

// pipeLimit is how long the output of a process is read after its end: a process that it
// has started may hold the pipes open.
const pipeLimit = time.Second

// Process is a running plugin. Unless it was started with a certificate it is
// reached without TLS, so that nothing is between the kit and what the process does.
// Its methods are safe for concurrent use.
type Process struct {
	// Conn is the connection without TLS; nil with a certificate.
	Conn *grpc.ClientConn
	// Certificate is that of the plugin, as the handshake line has it.
	Certificate string

	cmd    *exec.Cmd
	stdin  io.Closer
	target string // for gRPC
	exited chan struct{}
	state  *os.ProcessState // when exited is closed

	mu     sync.Mutex
	stdout bytes.Buffer // after the handshake line
	stderr observe.Log
}

// inherited are the variables that the server hands on from its own environment.
var inherited = []string{"PATH", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// outside returns the environment of a process that no host has started.
func (c Command) outside() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.Env...)
}

// environment returns the environment of the process, as the server sets it.
func (c Command) environment() []string {
	return append([]string{
		sdk.CookieKey + "=" + sdk.CookieValue, sdk.WatchKey + "=stdin", sdk.LogLevelKey + "=warn",
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", sdk.ProtocolVersion), socketDirKey + "=" + c.Dir, "TMPDIR=" + c.Dir,
	}, c.outside()...)
}

const socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"

// Left returns the processes that this command has started, directly or not, and that
// run. It is empty where there is no /proc.
func (c Command) Left() []int { return observe.WithVariable(socketDirKey + "=" + c.Dir) }

// Start runs the plugin and reads its handshake line. With the certificate of a host, in
// PEM, the caller connects with Connect. The error has what the plugin wrote to standard
// error; ErrNoHandshake means that it wrote no line in time.
func (c Command) Start(ctx context.Context, certificate []byte) (*Process, error) {
	p := &Process{exited: make(chan struct{})}
	stdout, stderr, err := p.launch(c, certificate)
	if err != nil {
		return nil, err
	}
	first := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() { p.read(stdout, first) })
	reading.Go(func() { p.listen(stderr) })
	go func() {
		defer close(p.exited)
		p.state, _ = p.cmd.Process.Wait() // nil after an error
		closePipes := time.AfterFunc(pipeLimit, func() { _, _ = stdout.Close(), stderr.Close() })
		reading.Wait()
		closePipes.Stop()
		_, _ = stdout.Close(), stderr.Close()
	}()
	select {
	case line := <-first:
		if err = p.handshake(line, c.Dir); err == nil && certificate == nil {
			p.Conn, err = p.Connect(insecure.NewCredentials())
		}
	case <-p.exited:
		err = fmt.Errorf("it ended before the handshake (%s)", p.state)
	case <-time.After(startLimit):
		err = fmt.Errorf("%w after %s", ErrNoHandshake, startLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		p.Kill()
		if printed := p.Stderr(); printed != "" {
			err = fmt.Errorf("%w; standard error: %s", err, printed)
		}
		return nil, err
	}
	return p, nil
}

// ErrNoHandshake is the error of a plugin that wrote no handshake line in time.
var ErrNoHandshake = errors.New("no handshake line")

// launch starts the process. It retries while the copy of the executable is open for
// writing: a thread that forks at the same time holds the descriptor for a moment.
func (p *Process) launch(c Command, certificate []byte) (stdout, stderr io.ReadCloser, err error) {
	for range 50 {
		if stdout, stderr, err = p.exec(c, certificate); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return stdout, stderr, err
}

// exec starts the process once, with pipes of its own: a failure closes them.
func (p *Process) exec(c Command, certificate []byte) (stdout, stderr io.ReadCloser, err error) {
	p.cmd = exec.Command(c.Args[0], c.Args[1:]...)
	p.cmd.Env = c.environment()
	if certificate != nil {
		p.cmd.Env = append(p.cmd.Env, hostcert.EnvKey+"="+string(certificate))
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	if stderr, err = p.cmd.StderrPipe(); err != nil {
		return nil, nil, err
	}
	return stdout, stderr, p.cmd.Start()
}

// read hands over the first line and keeps the others.
func (p *Process) read(r io.Reader, first chan<- string) {
	in := bufio.NewReaderSize(r, 64<<10)
	line, err := in.ReadSlice('\n')
	if len(line) == 0 {
		return
	}
	first <- string(line)
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return
	}
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		p.mu.Lock()
		if p.stdout.Len() < 64<<10 {
			p.stdout.Write(buf[:n])
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *Process) listen(r io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		p.mu.Lock()
		p.stderr.Add(buf[:n], time.Now())
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Shutdown requests the end of the process, as go-plugin's controller does.
func (p *Process) Shutdown(ctx context.Context) error {
	return p.Conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the process runs.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Ends reports whether the process has ended or ends within d. With both channels
// ready, select takes either, so what counts at the end is the process.
func (p *Process) Ends(d time.Duration) bool {
	select {
	case <-p.exited:
	case <-time.After(d):
	}
	return !p.Alive()
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// CloseStdin closes its standard input.
func (p *Process) CloseStdin() error { return p.stdin.Close() }

// Logged returns how much the process has logged.
func (p *Process) Logged() (mostLines, mostBytes, longestLine int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.MostLines, p.stderr.MostBytes, p.stderr.LongestLine
}

// Kill ends the process as a power cut would, and everything it started. The connection
// is closed.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
		_ = p.stdin.Close()
	}
	if p.Conn != nil {
		_ = p.Conn.Close()
	}
}

// Stdout returns what it wrote to standard output after the handshake.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// Stderr returns the end of its standard error.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(p.stderr.String())
}

// ByHand runs the plugin as from a shell, without a host, until it ends.
func (c Command) ByHand(ctx context.Context) (code int, stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.WaitDelay = c.outside(), time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) && ctx.Err() == nil {
		return ended.ExitCode(), out.String(), said.String(), nil
	}
	return 0, out.String(), said.String(), errors.Join(err, ctx.Err())
}
