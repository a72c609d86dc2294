// Command misbehaving is a plugin of all kinds that violates the contract as the
// environment selects: MODE names the violation and SEED selects one of its forms. It
// uses no SDK, which would prevent most violations. Mode honest violates nothing.
package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// The handshake of the contract, which the SDK would handle.
const (
	cookieKey   = "GUIDON_PLUGIN_COOKIE"
	cookieValue = "3f1b7c52-guidon-plugin"
)

var (
	mode    = os.Getenv("MODE")
	seed, _ = strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	random  = rand.New(rand.NewPCG(seed, 1))
)

// huge is larger than any message that the host accepts.
var huge = strings.Repeat("x", 70<<20)

func main() {
	if ignored := mode == "ignore_sigterm" || mode == "close_hang"; ignored {
		signal.Ignore(syscall.SIGTERM)
	}
	beforeHandshake()
	go whileServing()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		Plugins:         goplugin.PluginSet{"guidon": services{}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxSendMsgSize(1<<30), grpc.MaxRecvMsgSize(1<<30))...)
		},
	})
	if mode == "ignore_sigterm" || mode == "close_hang" {
		select {}
	}
}

type services struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (services) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterPluginServiceServer(s, plugin{})
	sinkv1.RegisterSinkServiceServer(s, sink{})
	notifyv1.RegisterNotifierServiceServer(s, notifier{})
	matchv1.RegisterMatcherServiceServer(s, matcher{})
	return nil
}

func (services) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin does not call itself")
}

// fail behaves as the mode demands in a call: it hangs, or returns an error.
func fail(call string) error {
	switch mode {
	case call + "_hang":
		select {}
	case call + "_unknown":
		return errors.New("an exception of a language without an SDK")
	case call + "_status":
		return status.Error(codes.Code(random.IntN(17)+1), "a status of gRPC")
	case call + "_exit":
		os.Exit(random.IntN(256))
	}
	return nil
}

// absurd returns an error with an unknown class, or one that asks for years of patience.
func absurd() *pluginv1.Error {
	return &pluginv1.Error{
		Class: pluginv1.Error_Class(random.IntN(100)), Code: "\x00\n/", Message: strings.Repeat("no ", 10_000),
		RetryAfter: durationpb.New(time.Duration(random.Int64()) - time.Duration(random.Int64())), Pointer: "/" + strings.Repeat("/", 1000),
	}
}

type plugin struct {
	pluginv1.UnimplementedPluginServiceServer
}

func (plugin) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	out := &pluginv1.InfoResponse{
		Name: "test/misbehaving", Version: "1.0.0", MultiInstance: true,
		Kinds: []pluginv1.Kind{pluginv1.Kind_KIND_SINK, pluginv1.Kind_KIND_NOTIFIER, pluginv1.Kind_KIND_MATCHER},
	}
	switch mode {
	case "info_nameless":
		out.Name = ""
	case "info_kinds":
		out.Kinds = []pluginv1.Kind{99}
	case "info_huge":
		out.Summary = huge
	}
	return out, fail("info")
}

func (plugin) ConfigSchema(context.Context, *pluginv1.ConfigSchemaRequest) (*pluginv1.ConfigSchemaResponse, error) {
	text := `{"type":"object"}`
	switch mode {
	case "schema_refuses": // another one at each start
		text = `{"type":"object","required":["option_` + strconv.FormatInt(time.Now().UnixNano(), 36) + `"]}`
	case "schema_invalid":
		text = []string{`{"type":7}`, `{`, `[]`, ``, `{"$ref":"https://example.com/a"}`, `{"$ref":"#"}`}[random.IntN(6)]
	case "schema_huge":
		text = `{"description":"` + huge + `"}`
	}
	return &pluginv1.ConfigSchemaResponse{JsonSchema: []byte(text)}, fail("schema")
}

func (plugin) Configure(context.Context, *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	switch mode {
	case "configure_neither":
		return &pluginv1.ConfigureResponse{}, nil
	case "configure_absurd":
		return &pluginv1.ConfigureResponse{Error: absurd()}, nil
	case "configure_diagnostics":
		out := &pluginv1.ConfigureResponse{}
		for range 100_000 {
			out.Diagnostics = append(out.Diagnostics, &pluginv1.Diagnostic{Severity: pluginv1.Diagnostic_SEVERITY_ERROR, Pointer: "/a/b", Summary: "no"})
		}
		return out, nil
	}
	return &pluginv1.ConfigureResponse{Accepted: true}, fail("configure")
}

func (plugin) Health(_ context.Context, req *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	out := &pluginv1.HealthResponse{Serving: mode != "health_not_serving"}
	for _, id := range req.GetInstanceIds() {
		out.Instances = append(out.Instances, &pluginv1.InstanceHealth{InstanceId: id, Status: pluginv1.InstanceHealth_STATUS_READY})
	}
	if mode == "health_failed" {
		for _, one := range out.GetInstances() {
			one.Status, one.Error = pluginv1.InstanceHealth_STATUS_FAILED, absurd()
		}
	}
	return out, fail("health")
}

func (plugin) Metrics(_ context.Context, req *pluginv1.MetricsRequest) (*pluginv1.MetricsResponse, error) {
	out := &pluginv1.MetricsResponse{Collected: true}
	if mode == "metrics_flood" {
		var text strings.Builder
		for n := range 200_000 {
			text.WriteString("m{n=\"" + strconv.Itoa(n) + "\"} 1\n")
		}
		for _, id := range append(req.GetInstanceIds(), "of another") {
			out.Instances = append(out.Instances, &pluginv1.InstanceMetrics{InstanceId: id, Openmetrics: []byte(text.String())})
		}
	}
	return out, nil
}

func (plugin) Drain(context.Context, *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	return &pluginv1.DrainResponse{Drained: true}, fail("drain")
}

func (plugin) Close(context.Context, *pluginv1.CloseRequest) (*pluginv1.CloseResponse, error) {
	return &pluginv1.CloseResponse{Closed: true}, fail("close")
}
