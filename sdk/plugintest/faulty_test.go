package plugintest_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// faulty is a matcher without the SDK, with the one fault that its name states. It
// answers no more than the cases that look for its fault need.
type faulty struct {
	pluginv1.UnimplementedPluginServiceServer
	fault string
}

// faultyCommand hides the cookie, so that the SDK in this binary leaves standard
// output alone.
func faultyCommand(fault string) []string {
	return []string{"/bin/sh", "-c", "unset " + sdk.CookieKey + "; exec '" + os.Args[0] + "' faulty-" + fault}
}

func serveFaulty(fault string) {
	if err := serveRaw(&faulty{fault: fault}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveRaw serves a plugin as the contract states it, without go-plugin.
func serveRaw(f *faulty) error {
	dir, err := os.MkdirTemp(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "f")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	var options []grpc.ServerOption
	certificate := ""
	if os.Getenv(hostcert.EnvKey) != "" {
		pair, _, err := hostcert.New()
		if err != nil {
			return err
		}
		// The fault open-tls: it trusts any client.
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})))
		certificate = base64.RawStdEncoding.EncodeToString(pair.Certificate[0])
	}
	s := grpc.NewServer(options...)
	pluginv1.RegisterPluginServiceServer(s, f)
	fmt.Printf("1|1|unix|%s|grpc|%s\n", path, certificate)
	return s.Serve(listener)
}

func (f *faulty) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	return &pluginv1.InfoResponse{Name: "acme/faulty", Version: "1.0.0", Kinds: []pluginv1.Kind{pluginv1.Kind_KIND_MATCHER}, MultiInstance: true}, nil
}

// Each of these has one fault that the SDK prevents.
func TestTheKitFindsFaultsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]struct{ name, says string }{
		"open-tls": {"speaks mutual TLS", "it serves a client with"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r, err := plugintest.Judge(t.Context(), plugintest.Target{Command: faultyCommand(fault)}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Cases, func(c plugintest.Case) bool {
				return c.Name == want.name && c.Outcome == plugintest.Failed && strings.Contains(c.Reason, want.says)
			}) {
				t.Errorf("%q did not fail with %q: %+v", want.name, want.says, r.Cases)
			}
		})
	}
}
