package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// What the host and a plugin must agree on before they can talk. CookieKey and
// CookieValue only distinguish a start by hand from a start by a host; they
// are no secret.
const (
	// ProtocolVersion is the major version of the contract.
	ProtocolVersion = 1
	// ProtocolMinor grows with each addition to it.
	ProtocolMinor = 1
	// CookieKey is the environment variable a host sets.
	CookieKey = "GUIDON_PLUGIN_COOKIE"
	// CookieValue is what the host sets it to.
	CookieValue = "3f1b7c52-guidon-plugin"
	// WatchKey is the environment variable by which the host announces
	// that it keeps the plugin's standard input open as long as it lives.
	WatchKey = "GUIDON_PLUGIN_WATCH"
	// LogLevelKey is the environment variable with the level of the log.
	LogLevelKey = "GUIDON_PLUGIN_LOG_LEVEL"
	// MaxMessageBytes is the largest request and the largest reply.
	MaxMessageBytes = 64 << 20
	// Version is the version of this package, as Info reports it.
	Version = "0.1.0"
)

// Plugin describes the program to Serve.
type Plugin struct {
	// Name is stable and lower case; a third party puts its own name first:
	// "acme/warehouse".
	Name string
	// Version is semantic: "1.4.2".
	Version string
	// Summary is one sentence for the operator.
	Summary string
	// Exclusive is true when two processes must never serve the same instance at
	// the same time, not even during an upgrade.
	Exclusive bool
	// SingleInstance is true when a process can serve one instance only, because
	// the plugin keeps something global. The host starts a process for each.
	SingleInstance bool
	// Sink makes a sink that is not opened yet, its config at the defaults. A
	// program may offer one kind or several; each instance is of one.
	Sink func() Sink
	// Notifier makes a notifier, likewise.
	Notifier func() Notifier
	// Matcher makes a matcher, likewise.
	Matcher func() Matcher
}

var (
	validName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$`)
	validVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
)

// check finds the author's mistakes before anything is served.
func (p Plugin) check() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("plugin %s: %v", p.Name, r)
		}
	}()
	switch {
	case !validName.MatchString(p.Name):
		return fmt.Errorf("plugin name %q: want lower case, at most one slash", p.Name)
	case !validVersion.MatchString(p.Version):
		return fmt.Errorf("plugin %s: version %q is not semantic (1.2.3)", p.Name, p.Version)
	case len(p.kinds()) == 0:
		return fmt.Errorf("plugin %s offers nothing: set Sink, Notifier or Matcher", p.Name)
	}
	for _, k := range p.kinds() {
		if err := checkOptional(k.make().author(), k.optional()...); err != nil {
			return fmt.Errorf("plugin %s: %w", p.Name, err)
		}
		Schema(k.config())
	}
	return nil
}

// Serve runs the plugin until the host stops it, and returns. It belongs at the
// end of main. What the program prints goes to the host's log, also what it
// prints to standard output. Serve ends the process, with a reason on standard
// error, when it was not started by a host or when p is not a valid plugin.
// Started by hand with DebugKey or ListenKey in the environment, it waits for a
// host that connects to it, until an interrupt or SIGTERM.
//
// When the host dies the process closes its instances and ends within two
// seconds. An interrupt is ignored, because it is meant for the host; on
// SIGTERM the host is given a few seconds to finish first.
func Serve(p Plugin) {
	if err := p.check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Getenv(CookieKey) != CookieValue {
		if standsAlone() {
			if err := serveAlone(p); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
		fmt.Fprintf(os.Stderr, "%s %s is a Guidon plugin: it is started by the server, not by hand.\n"+
			"Name it under plugins.instances in the server's config.\n"+
			"With %s=1 it waits for a server, for work with a debugger.\n", p.Name, p.Version, DebugKey)
		os.Exit(1)
	}
	srv := newServer(p)
	setUpLog()
	srv.watch()
	lendOutput()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: ProtocolVersion, MagicCookieKey: CookieKey, MagicCookieValue: CookieValue,
		},
		Plugins:    goplugin.PluginSet{"guidon": &registrar{srv: srv}},
		GRPCServer: srv.grpcServer,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "go-plugin", Level: hclog.Warn, Output: logOutput, JSONFormat: true,
		}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	srv.closeAll(ctx)
}

// registrar puts our services on the server that go-plugin makes.
type registrar struct {
	goplugin.NetRPCUnsupportedPlugin
	srv *server
}

func (r *registrar) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	r.srv.register(s)
	return nil
}

func (r *registrar) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin does not call itself")
}
