package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// ReattachConfig is a plugin on this machine that somebody has started by hand,
// to look into it with a debugger. The plugin prints both when it starts.
type ReattachConfig struct {
	// Socket is the path of its socket.
	Socket string `koanf:"socket"`
	// PID is its process; another one at that socket is not talked to. 0 is
	// any of the same user.
	PID int `koanf:"pid"`
}

// RemoteConfig is a plugin on another machine. Both sides show a certificate.
type RemoteConfig struct {
	// Address is host:port.
	Address string `koanf:"address"`
	// CA, Cert and Key are PEM files: who may vouch for the plugin, and what the
	// server shows. They are read at each connection.
	CA   string `koanf:"ca"`
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
	// ServerName is the name in the plugin's certificate; "" is the host of
	// the address.
	ServerName string `koanf:"server_name"`
}

// attached reports whether the server connects to a process that it does not
// start.
func (c InstanceConfig) attached() bool { return c.address() != "" }

// address is where such a process is, or "".
func (c InstanceConfig) address() string { return cmp.Or(c.Reattach.Socket, c.Remote.Address) }

// validateAttached finds what is wrong with the connection to such a process.
func (c InstanceConfig) validateAttached() error {
	r := c.Remote
	_, _, portErr := net.SplitHostPort(r.Address)
	switch {
	case !c.attached() && (c.Reattach != ReattachConfig{} || r != RemoteConfig{}):
		return errors.New("reattach needs a socket, remote an address")
	case !c.attached():
		return nil
	case c.Reattach.Socket != "" && r.Address != "":
		return errors.New("reattach and remote exclude each other")
	case c.Reattach.PID < 0:
		return errors.New("reattach.pid must not be negative")
	case c.Reattach.Socket != "" && !filepath.IsAbs(c.Reattach.Socket):
		return errors.New("reattach.socket must be an absolute path")
	case r.Address != "" && portErr != nil:
		return fmt.Errorf("remote.address must be host:port, not %q", r.Address)
	case r.Address != "" && (r.CA == "" || r.Cert == "" || r.Key == ""):
		return errors.New("remote needs ca, cert and key: both sides show a certificate")
	case c.SHA256 != "" || c.Limits != LimitConfig{} || len(c.Env.Allow)+len(c.Env.Set) > 0:
		return errors.New("sha256, limits and env are for processes that the server starts itself")
	}
	return nil
}

// contact stands for the command line of an attached process: it says which
// instances may share a connection.
func (c InstanceConfig) contact() []string {
	return []string{"attach", c.Reattach.Socket, strconv.Itoa(c.Reattach.PID), c.Remote.Address, c.Remote.CA, c.Remote.Cert, c.Remote.Key, c.Remote.ServerName}
}

// attach connects to a process that somebody else has started. The peer is gone
// with the connection.
func (h *Host) attach(ctx context.Context, c InstanceConfig) (*peer, error) {
	target, options, err := c.dialling(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target, append(append(options, grpc.WithIdleTimeout(0)), h.traces.dialOptions()...)...)
	if err != nil {
		return nil, &failure{state: StateMisconfigured, reason: "address", message: err.Error()}
	}
	p := newPeer(conn, nil)
	conn.Connect()
	go p.forsakeWithConnection()
	return p, nil
}

// dialling says how to connect, and finds out what cannot be right.
func (c InstanceConfig) dialling(ctx context.Context) (string, []grpc.DialOption, error) {
	if c.Remote.Address != "" {
		config, err := c.Remote.tls()
		if err != nil {
			return "", nil, &failure{state: StateMisconfigured, reason: "certificate", message: err.Error()}
		}
		return "passthrough:///" + c.Remote.Address, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}, nil
	}
	conn, err := c.Reattach.dial(ctx)
	switch {
	case errors.Is(err, errUntrusted):
		return "", nil, &failure{state: StateUntrusted, reason: "stranger", message: err.Error()}
	case err != nil:
		return "", nil, &failure{state: StateBackoff, reason: "connect", message: err.Error()}
	}
	_ = conn.Close()
	return "passthrough:///" + c.Reattach.Socket, []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.Reattach.dial(ctx) }),
	}, nil
}

// unreached adds to a failure where the plugin was looked for, and what to look
// at: one side learns nothing of why the other does not like its certificate.
func unreached(c InstanceConfig, f *failure) *failure {
	if c.Remote.Address != "" {
		f.message = "cannot talk to " + c.Remote.Address + ", where certificates of both sides must fit: " + f.message
	}
	return f
}

// dial connects to the socket, if who listens there is who was meant: secrets
// and events go to nobody else.
func (r ReattachConfig) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", r.Socket)
	if err != nil {
		return nil, err
	}
	uid, pid, known := listener(conn)
	switch {
	case known && uid != os.Getuid():
		err = fmt.Errorf("%w: the process at %s is of another user", errUntrusted, r.Socket)
	case known && r.PID != 0 && pid != r.PID:
		err = fmt.Errorf("%w: the process at %s is %d, the config says %d", errUntrusted, r.Socket, pid, r.PID)
	default:
		return conn, nil
	}
	return nil, errors.Join(err, conn.Close())
}

// tls is for a connection in which both sides show a certificate.
func (r RemoteConfig) tls() (*tls.Config, error) {
	text, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", r.CA)
	}
	pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: []tls.Certificate{pair}, ServerName: r.ServerName}, nil
}

// callSizes bounds messages as the contract does.
func callSizes() grpc.DialOption {
	return grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessageBytes), grpc.MaxCallSendMsgSize(sdk.MaxMessageBytes))
}

// forsakeWithConnection forsakes the peer when its connection is lost: whoever
// is there afterwards knows nothing of our instances.
func (p *peer) forsakeWithConnection() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-p.exited
		cancel()
	}()
	up := false
	for {
		state := p.conn.GetState()
		switch {
		case state == connectivity.Ready:
			up = true
		case up || state == connectivity.TransientFailure || state == connectivity.Shutdown:
			p.forsake()
			return
		}
		if !p.conn.WaitForStateChange(ctx, state) {
			return // forsaken by others
		}
	}
}

// disown has an attached process let go of what an earlier server may have left
// with it under the name of this instance.
func (s *session) disown(ctx context.Context) error {
	if s.proc != nil {
		return nil
	}
	return s.call(ctx, "close", s.timeouts.Flush, func(ctx context.Context) (string, error) {
		out, err := s.plugin.Close(ctx, &pluginv1.CloseRequest{InstanceId: s.instance})
		return accepted(out.GetClosed()), err
	})
}

// exclusive reports whether two generations must not live side by side: the
// plugin says so, or both would be in the one process there is.
func (s *session) exclusive() bool { return s.info.GetExclusive() || s.proc == nil }
