package host_test

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// Another process of the machine that reaches the socket of a plugin gets no answer: the
// plugin serves the certificate of its host only.
func TestPluginServesItsHostOnly(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	r.sink(t)
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(r.Status()[0].PID) + "/environ")
	if err != nil {
		t.Skip("the environment of a process is known on Linux only:", err)
	}
	variables := strings.Split(string(environ), "\x00")
	at := slices.IndexFunc(variables, func(v string) bool { return strings.HasPrefix(v, "PLUGIN_UNIX_SOCKET_DIR=") })
	if at < 0 {
		t.Fatal("the plugin has no directory for its socket")
	}
	sockets, err := filepath.Glob(strings.TrimPrefix(variables[at], "PLUGIN_UNIX_SOCKET_DIR=") + "/*")
	if err != nil || len(sockets) == 0 {
		t.Fatalf("no socket: %v", err)
	}
	other, _, err := hostcert.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, transport := range map[string]credentials.TransportCredentials{
		"without TLS":          insecure.NewCredentials(),
		"without certificate":  credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}),                                         //nolint:gosec // the test is the attacker
		"with another of ours": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{other}}), //nolint:gosec // the test is the attacker
	} {
		cc, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(transport))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = pluginv1.NewPluginServiceClient(cc).Info(ctx, &pluginv1.InfoRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		_ = cc.Close()
	}
}
