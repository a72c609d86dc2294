package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// attach connects to a process that somebody else has started. The peer is gone
// with the connection.
func (h *Host) attach(ctx context.Context, c settings.Instance) (*peer, error) {
	target, options, err := dialTarget(ctx, c)
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

// dialTarget returns the address of an attached plugin and how to dial it. A
// certificate or socket that cannot be used is a *failure.
func dialTarget(ctx context.Context, c settings.Instance) (string, []grpc.DialOption, error) {
	if c.Remote.Address != "" {
		config, err := remoteTLS(c.Remote)
		if err != nil {
			return "", nil, &failure{state: StateMisconfigured, reason: "certificate", message: err.Error()}
		}
		return "passthrough:///" + c.Remote.Address, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}, nil
	}
	conn, err := dialSocket(ctx, c.Reattach)
	switch {
	case errors.Is(err, errUntrusted):
		return "", nil, &failure{state: StateUntrusted, reason: "stranger", message: err.Error()}
	case err != nil:
		return "", nil, &failure{state: StateBackoff, reason: "connect", message: err.Error()}
	}
	_ = conn.Close()
	return "passthrough:///" + c.Reattach.Socket, []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dialSocket(ctx, c.Reattach) }),
	}, nil
}

// unreached adds to a failure where the plugin was looked for, and what to look
// at: one side learns nothing of why the other does not like its certificate.
func unreached(c settings.Instance, f *failure) *failure {
	if c.Remote.Address != "" {
		f.message = "cannot talk to " + c.Remote.Address + ", where certificates of both sides must fit: " + f.message
	}
	return f
}

// dialSocket connects to the socket of r. It fails with errUntrusted when the
// listening process belongs to another user or has another process id: secrets
// and events go to the configured process only.
func dialSocket(ctx context.Context, r settings.Reattach) (net.Conn, error) {
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

// remoteTLS returns the settings of a connection in which both sides present a
// certificate.
func remoteTLS(r settings.Remote) (*tls.Config, error) {
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
