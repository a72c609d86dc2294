package process_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/sdk/hostcert"
)

// The certificate of the host is one that gRPC's C core and rustls accept.
func TestLaunchHandsOverCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "cert.pem")
	_, err := process.Launch(t.Context(), process.Options{
		Argv:         []string{"/bin/sh", "-c", `printf %s "$` + hostcert.EnvKey + `" >` + path + `; exit 1`},
		StartTimeout: time.Minute, SocketDir: dir, Logs: process.NewLogPipe(zap.NewNop(), 100, func(string, int) {}),
	})
	if err == nil {
		t.Fatal("a process that ends has no handshake")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no certificate: %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() || cert.IsCA {
		t.Errorf("the key is %T of %s, CA %v; want P-256 and no authority", cert.PublicKey, cert.SignatureAlgorithm, cert.IsCA)
	}
}

// standIn serves gRPC on a socket that a launched script names, with a certificate or
// without TLS, and returns the answer to a call of the host. The script names its own
// certificate in the handshake line.
func standIn(t *testing.T, named, served *tls.Certificate) error {
	t.Helper()
	dir := t.TempDir()
	field := ""
	if named != nil {
		field = base64.RawStdEncoding.EncodeToString(named.Certificate[0])
	}
	script := `echo "$PLUGIN_UNIX_SOCKET_DIR" >` + dir + `/new && mv ` + dir + `/new ` + dir + `/socket-dir
		while ! [ -S "$PLUGIN_UNIX_SOCKET_DIR/s" ]; do sleep 0.01; done
		echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/s|grpc|` + field + `"; exec sleep 600`
	var options []grpc.ServerOption
	if served != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(served)))
	}
	server := grpc.NewServer(options...)
	defer server.Stop()
	go func() {
		for {
			at, err := os.ReadFile(filepath.Join(dir, "socket-dir"))
			if err == nil {
				if l, err := net.Listen("unix", filepath.Join(strings.TrimSpace(string(at)), "s")); err == nil {
					_ = server.Serve(l)
				}
				return
			}
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	launched, err := process.Launch(t.Context(), process.Options{
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, StartTimeout: time.Minute, SocketDir: t.TempDir(),
		Logs: process.NewLogPipe(zap.NewNop(), 100, func(string, int) {}),
	})
	if err != nil {
		return err
	}
	defer launched.Release()
	defer func() { _ = launched.Process.Kill(t.Context()) }()
	return launched.Conn.Invoke(t.Context(), "/test/Call", &emptypb.Empty{}, &emptypb.Empty{})
}

// The host speaks only to the process that has the certificate of the handshake line.
func TestStandInForAPluginIsRefused(t *testing.T) {
	t.Parallel()
	one, _, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		named, served *tls.Certificate
		answers       bool
	}{
		"its certificate":           {&one, &one, true},
		"another certificate":       {&one, &other, false},
		"no TLS":                    {&one, nil, false},
		"no certificate, TLS":       {nil, &one, false},
		"no certificate and no TLS": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := standIn(t, tt.named, tt.served)
			if answers := status.Code(err) == codes.Unimplemented; answers != tt.answers {
				t.Errorf("the call reached the server: %v, want %v: %v", answers, tt.answers, err)
			}
		})
	}
}
