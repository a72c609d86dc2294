package candidate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// handshake reads the handshake line, core|protocol|network|address|grpc|certificate. Like
// the server it refuses an address other than that of a socket in dir.
func (p *Process) handshake(line, dir string) error {
	part := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(part) < 5:
		return fmt.Errorf("%q is not a handshake line", observe.Clip(line))
	case part[0] != "1" || part[1] != fmt.Sprint(sdk.ProtocolVersion):
		return fmt.Errorf("it speaks protocol %s of core %s, want %d of 1", observe.Clip(part[1]), observe.Clip(part[0]), sdk.ProtocolVersion)
	case part[4] != "grpc":
		return fmt.Errorf("it speaks %s, want grpc", observe.Clip(part[4]))
	}
	if part[2] != "unix" || !socketIn(dir, part[3]) {
		return fmt.Errorf("the handshake names %s %q, which is no socket in %s", observe.Clip(part[2]), observe.Clip(part[3]), socketDirKey)
	}
	p.target = "unix:" + part[3]
	if len(part) > 5 {
		p.Certificate = part[5]
	}
	return nil
}

// socketIn reports whether path is a socket below dir, also when links are followed.
func socketIn(dir, path string) bool {
	dir, dirErr := filepath.EvalSymlinks(dir)
	path, pathErr := filepath.EvalSymlinks(path)
	if dirErr != nil || pathErr != nil {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// Connect makes a connection, which is established at the first call.
func (p *Process) Connect(creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient(p.target, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(sdk.MaxMessageBytes), grpc.MaxCallSendMsgSize(sdk.MaxMessageBytes), grpc.WaitForReady(false)))
}

// Plugin calls the service that every plugin has.
func (p *Process) Plugin() pluginv1.PluginServiceClient {
	return pluginv1.NewPluginServiceClient(p.Conn)
}

// Sink calls the service of sinks.
func (p *Process) Sink() sinkv1.SinkServiceClient { return sinkv1.NewSinkServiceClient(p.Conn) }

// Notifier calls the service of notifiers.
func (p *Process) Notifier() notifyv1.NotifierServiceClient {
	return notifyv1.NewNotifierServiceClient(p.Conn)
}

// Matcher calls the service of matchers.
func (p *Process) Matcher() matchv1.MatcherServiceClient {
	return matchv1.NewMatcherServiceClient(p.Conn)
}
