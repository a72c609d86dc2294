package plugintest

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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// startLimit is how long a plugin may take to shake hands.
const startLimit = 15 * time.Second

// process is a running plugin. Unless it was started with a certificate it is
// reached without TLS, so that nothing is between the kit and what the process does.
type process struct {
	cmd         *exec.Cmd
	stdin       io.Closer
	conn        *grpc.ClientConn // without TLS; nil with a certificate
	target      string           // for gRPC
	certificate string           // of the plugin, as the handshake line has it
	exited      chan struct{}

	mu     sync.Mutex
	stdout bytes.Buffer // after the handshake line
	stderr observe.Log
}

// inherited are the variables that the server hands on from its own environment.
var inherited = []string{"PATH", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// outside returns the environment of a process that no host has started.
func outside(t *Target) []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, t.Env...)
}

// environment returns the environment of the process, as the server sets it.
func environment(t *Target, dir string) []string {
	return append([]string{
		sdk.CookieKey + "=" + sdk.CookieValue, sdk.WatchKey + "=stdin", sdk.LogLevelKey + "=warn",
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", sdk.ProtocolVersion), socketDirKey + "=" + dir, "TMPDIR=" + dir,
	}, outside(t)...)
}

const socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"

// start runs the plugin and shakes hands. With the certificate of a host, in PEM, the
// caller connects with connectTLS.
func start(ctx context.Context, t *Target, dir string, certificate []byte) (*process, error) {
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command(t.Command[0], t.Command[1:]...)
	p.cmd.Env = environment(t, dir)
	if certificate != nil {
		p.cmd.Env = append(p.cmd.Env, hostcert.EnvKey+"="+string(certificate))
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := p.exec(); err != nil {
		return nil, err
	}
	first := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() { p.read(stdout, first) })
	reading.Go(func() { p.listen(stderr) })
	go func() {
		reading.Wait()
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	select {
	case line := <-first:
		if err = p.handshake(line); err == nil && certificate == nil {
			p.conn, err = p.connect(insecure.NewCredentials())
		}
	case <-p.exited:
		err = fmt.Errorf("it ended before the handshake (%s)", p.cmd.ProcessState)
	case <-time.After(startLimit):
		err = fmt.Errorf("%w after %s", errNoHandshake, startLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%w; standard error: %s", err, p.said())
	}
	return p, nil
}

var errNoHandshake = errors.New("no handshake line")

// exec starts the process. It retries while the copy of the executable is open for
// writing: a thread that forks at the same time holds the descriptor for a moment.
func (p *process) exec() (err error) {
	for range 50 {
		if err = p.cmd.Start(); !errors.Is(err, syscall.ETXTBSY) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		again := exec.Command(p.cmd.Args[0], p.cmd.Args[1:]...)
		again.Env, again.SysProcAttr, again.WaitDelay = p.cmd.Env, p.cmd.SysProcAttr, p.cmd.WaitDelay
		again.Stdin, again.Stdout, again.Stderr = p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr
		p.cmd = again
	}
	return err
}

func lookPath(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return name
}

// read hands over the first line and keeps the others.
func (p *process) read(r io.Reader, first chan<- string) {
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

func (p *process) listen(r io.Reader) {
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

// handshake reads the handshake line, core|protocol|network|address|grpc|certificate.
func (p *process) handshake(line string) error {
	part := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(part) < 5:
		return fmt.Errorf("%q is not a handshake line", clip(line))
	case part[0] != "1" || part[1] != fmt.Sprint(sdk.ProtocolVersion):
		return fmt.Errorf("it speaks protocol %s of core %s, want %d of 1", clip(part[1]), clip(part[0]), sdk.ProtocolVersion)
	case part[4] != "grpc":
		return fmt.Errorf("it speaks %s, want grpc", clip(part[4]))
	}
	p.target = "passthrough:///" + part[3]
	if part[2] == "unix" {
		p.target = "unix:" + part[3]
	}
	if len(part) > 5 {
		p.certificate = part[5]
	}
	return nil
}

// connect makes a connection, which is established at the first call.
func (p *process) connect(creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient(p.target, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(sdk.MaxMessageBytes), grpc.MaxCallSendMsgSize(sdk.MaxMessageBytes), grpc.WaitForReady(false)))
}

func clip(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}

func (p *process) plugin() pluginv1.PluginServiceClient {
	return pluginv1.NewPluginServiceClient(p.conn)
}
func (p *process) sink() sinkv1.SinkServiceClient { return sinkv1.NewSinkServiceClient(p.conn) }
func (p *process) notifier() notifyv1.NotifierServiceClient {
	return notifyv1.NewNotifierServiceClient(p.conn)
}
func (p *process) matcher() matchv1.MatcherServiceClient {
	return matchv1.NewMatcherServiceClient(p.conn)
}

// shutdown requests the end of the process, as go-plugin's controller does.
func (p *process) shutdown(ctx context.Context) error {
	return p.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// ends reports whether the process has ended or ends within d. With both channels
// ready, select takes either, so what counts at the end is the process.
func (p *process) ends(d time.Duration) bool {
	select {
	case <-p.exited:
	case <-time.After(d):
	}
	return !p.alive()
}

// kill ends the process as a power cut would, and everything it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
	_ = p.stdin.Close()
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// printed is what it wrote to standard output after the handshake.
func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// said returns the end of its standard error.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(p.stderr.String())
}

// byHand runs the plugin from a shell, without a host.
func byHand(ctx context.Context, t *Target) (code int, stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	cmd.Env, cmd.WaitDelay = outside(t), time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) && ctx.Err() == nil {
		return ended.ExitCode(), out.String(), said.String(), nil
	}
	return 0, out.String(), said.String(), errors.Join(err, ctx.Err())
}
