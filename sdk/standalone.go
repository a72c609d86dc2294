package sdk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// The environment of a plugin that is started by hand, and that a server then
// connects to instead of starting it.
const (
	// DebugKey, set to anything, has the plugin wait on a socket that only the
	// same user on the same machine can reach, and print what to write into the
	// server's config: for work with a debugger.
	DebugKey = "GUIDON_PLUGIN_DEBUG"
	// ListenKey is the address to listen at for servers on other machines. It
	// needs the three others: files with the plugin's certificate, its key, and
	// the authorities whose clients may connect, all PEM.
	ListenKey  = "GUIDON_PLUGIN_LISTEN"
	TLSCertKey = "GUIDON_PLUGIN_TLS_CERT"
	TLSKeyKey  = "GUIDON_PLUGIN_TLS_KEY"
	TLSCAKey   = "GUIDON_PLUGIN_TLS_CA"
)

// standsAlone reports whether the environment makes the plugin wait for a server.
func standsAlone() bool { return os.Getenv(DebugKey) != "" || os.Getenv(ListenKey) != "" }

// serveAlone serves until an interrupt or SIGTERM.
func serveAlone(p Plugin) error {
	srv := newServer(p)
	setUpLog()
	srv.redirect.Do(func() {}) // keep the standard streams
	listener, creds, done, err := listen(p)
	if err != nil {
		return err
	}
	defer done()
	g := srv.grpcServer(append(creds, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime: 5 * time.Second, PermitWithoutStream: true,
	})))
	srv.register(g)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ended
		signal.Stop(ended) // the second ends it at once
		time.AfterFunc(termGrace, g.Stop)
		g.GracefulStop()
	}()
	err = g.Serve(listener)
	ctx, cancel := context.WithTimeout(context.Background(), termGrace)
	defer cancel()
	srv.closeAll(ctx)
	return err
}

// listen opens the socket that the environment configures, and prints its address.
func listen(p Plugin) (net.Listener, []grpc.ServerOption, func(), error) {
	if address := os.Getenv(ListenKey); address != "" {
		config, err := mutualTLS(os.Getenv(TLSCertKey), os.Getenv(TLSKeyKey), os.Getenv(TLSCAKey))
		if err != nil {
			return nil, nil, nil, err
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, nil, nil, err
		}
		fmt.Printf("%s %s waits for a server. Under plugins.instances, beside name and kind:\n\n"+
			"use: %s\nremote: {address: %q, ca: …, cert: …, key: …}\n", p.Name, p.Version, p.Name, listener.Addr())
		return listener, []grpc.ServerOption{grpc.Creds(credentials.NewTLS(config))}, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "guidon-plugin-")
	if err != nil {
		return nil, nil, nil, err
	}
	done := func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "plugin.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	fmt.Printf("%s %s waits for a server. Under plugins.instances, beside name and kind:\n\n"+
		"use: %s\nreattach: {socket: %q, pid: %d}\n", p.Name, p.Version, p.Name, path, os.Getpid())
	return listener, nil, done, nil
}

// mutualTLS returns the settings of a server that requires client certificates of the
// authorities. It reads its own certificate again for each connection.
func mutualTLS(cert, key, ca string) (*tls.Config, error) {
	if cert == "" || key == "" || ca == "" {
		return nil, fmt.Errorf("with %s, set %s, %s and %s too: who may connect is told by certificates", ListenKey, TLSCertKey, TLSKeyKey, TLSCAKey)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, errors.New(ca + " holds no certificate")
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		},
	}, nil
}
