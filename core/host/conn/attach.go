package conn

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

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/settings"
)

// attach connects to a process that the host did not start.
func attach(ctx context.Context, c settings.Instance, options []grpc.DialOption) (*Conn, error) {
	target, transport, err := dialTarget(ctx, c)
	if err != nil {
		return nil, err
	}
	cc, err := grpc.NewClient(target, append(append(transport, grpc.WithIdleTimeout(0)), options...)...)
	if err != nil {
		return nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "address", Message: err.Error()}
	}
	conn := newConn(cc, nil)
	cc.Connect()
	go conn.watchConnection()
	return conn, nil
}

// dialTarget returns the address of an attached process and how to dial it.
func dialTarget(ctx context.Context, c settings.Instance) (string, []grpc.DialOption, error) {
	if c.Remote.Address != "" {
		config, err := remoteTLS(c.Remote)
		if err != nil {
			return "", nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "certificate", Message: err.Error()}
		}
		return "passthrough:///" + c.Remote.Address, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}, nil
	}
	conn, err := dialSocket(ctx, c.Reattach)
	switch {
	case errors.Is(err, process.ErrUntrusted):
		return "", nil, &lifecycle.Failure{State: lifecycle.StateUntrusted, Reason: "stranger", Message: err.Error()}
	case err != nil:
		return "", nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "connect", Message: err.Error()}
	}
	_ = conn.Close()
	return "passthrough:///" + c.Reattach.Socket, []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dialSocket(ctx, c.Reattach) }),
	}, nil
}

// withAddress adds the address of an attached process to the message of a failure. A
// remote one gets a hint too: one side does not learn why the other rejects its
// certificate.
func withAddress(c settings.Instance, f *lifecycle.Failure) *lifecycle.Failure {
	switch {
	case c.Reattach.Socket != "":
		f.Message = "cannot talk to the process at " + c.Reattach.Socket + ": " + f.Message
	case c.Remote.Address != "":
		f.Message = "cannot talk to " + c.Remote.Address + ", where certificates of both sides must fit: " + f.Message
	}
	return f
}

// dialSocket connects to a socket. It fails with process.ErrUntrusted when the
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
		err = fmt.Errorf("%w: the process at %s is of another user", process.ErrUntrusted, r.Socket)
	case known && r.PID != 0 && pid != r.PID:
		err = fmt.Errorf("%w: the process at %s is %d, the config says %d", process.ErrUntrusted, r.Socket, pid, r.PID)
	default:
		return conn, nil
	}
	return nil, errors.Join(err, conn.Close())
}

// remoteTLS returns the TLS settings of a connection in which both sides present a
// certificate.
func remoteTLS(r settings.Remote) (*tls.Config, error) {
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", r.CA)
	}
	pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: []tls.Certificate{pair}, ServerName: r.ServerName}, nil
}

// watchConnection marks an attached process as gone when its connection is lost: the
// process that answers after a reconnect knows none of the instances.
func (c *Conn) watchConnection() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-c.exited
		cancel()
	}()
	up := false
	for {
		state := c.GRPC.GetState()
		switch {
		case state == connectivity.Ready:
			up = true
		case up || state == connectivity.TransientFailure || state == connectivity.Shutdown:
			c.markGone()
			return
		}
		if !c.GRPC.WaitForStateChange(ctx, state) {
			return
		}
	}
}
