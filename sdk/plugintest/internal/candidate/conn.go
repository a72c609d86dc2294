package candidate

import (
	"fmt"
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

// handshake reads the handshake line, core|protocol|network|address|grpc|certificate.
func (p *Process) handshake(line string) error {
	part := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(part) < 5:
		return fmt.Errorf("%q is not a handshake line", observe.Clip(line))
	case part[0] != "1" || part[1] != fmt.Sprint(sdk.ProtocolVersion):
		return fmt.Errorf("it speaks protocol %s of core %s, want %d of 1", observe.Clip(part[1]), observe.Clip(part[0]), sdk.ProtocolVersion)
	case part[4] != "grpc":
		return fmt.Errorf("it speaks %s, want grpc", observe.Clip(part[4]))
	}
	p.target = "passthrough:///" + part[3]
	if part[2] == "unix" {
		p.target = "unix:" + part[3]
	}
	if len(part) > 5 {
		p.Certificate = part[5]
	}
	return nil
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
