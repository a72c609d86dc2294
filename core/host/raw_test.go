package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// raw is a plugin without the SDK that violates the contract: its config selects the
// answers.
type raw struct {
	pluginv1.UnimplementedPluginServiceServer
	notifyv1.UnimplementedNotifierServiceServer
	matchv1.UnimplementedMatcherServiceServer

	mu     sync.Mutex
	answer map[string]string // by instance
}

const rawCookie = "GUIDON_TEST_RAW"

// rawCommand hides the cookie, so that the SDK in this binary leaves the standard
// output alone.
func rawCommand(name string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{"/bin/sh", "-c", rawCookie + "=$" + sdk.CookieKey + "; unset " + sdk.CookieKey + "; export " + rawCookie +
		"; exec " + self + " plugin exec " + name}
}

func serveRaw(services goplugin.Plugin) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: rawCookie, MagicCookieValue: sdk.CookieValue,
		},
		Plugins:    goplugin.PluginSet{"guidon": services},
		GRPCServer: goplugin.DefaultGRPCServer,
	})
}

type rawRegistrar struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (rawRegistrar) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	r := &raw{answer: map[string]string{}}
	pluginv1.RegisterPluginServiceServer(s, r)
	notifyv1.RegisterNotifierServiceServer(s, rawNotifier{r})
	matchv1.RegisterMatcherServiceServer(s, rawMatcher{r})
	return nil
}

func (rawRegistrar) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("a plugin does not call itself")
}

func (r *raw) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	return &pluginv1.InfoResponse{
		Name: "raw", Version: "1.0.0", Kinds: []pluginv1.Kind{pluginv1.Kind_KIND_NOTIFIER, pluginv1.Kind_KIND_MATCHER, 99},
	}, nil
}

func (r *raw) Configure(_ context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	var config struct{ Answer string }
	if err := json.Unmarshal(req.GetConfig().GetConfigJson(), &config); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[req.GetInstanceId()] = config.Answer
	return &pluginv1.ConfigureResponse{Accepted: true}, nil
}

func (r *raw) Health(_ context.Context, req *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	out := &pluginv1.HealthResponse{Serving: true}
	for _, id := range req.GetInstanceIds() {
		out.Instances = append(out.Instances, &pluginv1.InstanceHealth{InstanceId: id, Status: pluginv1.InstanceHealth_STATUS_READY})
	}
	return out, nil
}

func (r *raw) Close(context.Context, *pluginv1.CloseRequest) (*pluginv1.CloseResponse, error) {
	return &pluginv1.CloseResponse{Closed: true}, nil
}

func (r *raw) Drain(context.Context, *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	return &pluginv1.DrainResponse{Drained: true}, nil
}

func (r *raw) of(instance string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer[instance]
}

type rawNotifier struct{ *raw }

func (r rawNotifier) Open(_ context.Context, req *notifyv1.OpenRequest) (*notifyv1.OpenResponse, error) {
	if r.of(req.GetInstanceId()) == "open" {
		return &notifyv1.OpenResponse{}, nil
	}
	return &notifyv1.OpenResponse{Opened: true, Properties: &notifyv1.NotifierProperties{
		MaxItems: 1 << 31, MaxInFlight: 1 << 31, PerSecond: -1, DedupWindow: durationpb.New(-time.Hour), Formats: []string{"interpretive_dance"},
	}}, nil
}

func (r rawNotifier) Notify(_ context.Context, req *notifyv1.NotifyRequest) (*notifyv1.NotifyResponse, error) {
	one := &notifyv1.NotifyResult{Outcome: notifyv1.NotifyResult_OUTCOME_DELIVERED}
	switch r.of(req.GetInstanceId()) {
	case "empty":
		return &notifyv1.NotifyResponse{}, nil
	case "more":
		return &notifyv1.NotifyResponse{Results: []*notifyv1.NotifyResult{one, one, one, one}}, nil
	case "zero":
		return &notifyv1.NotifyResponse{Results: []*notifyv1.NotifyResult{one, {}}}, nil
	case "future":
		return &notifyv1.NotifyResponse{Results: []*notifyv1.NotifyResult{one, {Outcome: 99}}}, nil
	case "both":
		return &notifyv1.NotifyResponse{Results: []*notifyv1.NotifyResult{one, {
			Outcome: notifyv1.NotifyResult_OUTCOME_DELIVERED, Error: &pluginv1.Error{Class: pluginv1.Error_CLASS_CONFIG},
		}}}, nil
	case "backwards":
		return &notifyv1.NotifyResponse{Results: []*notifyv1.NotifyResult{
			{Outcome: notifyv1.NotifyResult_OUTCOME_RETRY, Error: &pluginv1.Error{
				Class: pluginv1.Error_CLASS_THROTTLED, RetryAfter: durationpb.New(-time.Hour),
			}},
			{Outcome: notifyv1.NotifyResult_OUTCOME_DELIVERED, Rate: &notifyv1.Rate{ResetAfter: durationpb.New(-time.Hour)}},
		}}, nil
	}
	return nil, fmt.Errorf("what?")
}

type rawMatcher struct{ *raw }

func (r rawMatcher) Open(context.Context, *matchv1.OpenRequest) (*matchv1.OpenResponse, error) {
	return &matchv1.OpenResponse{Opened: true, Properties: &matchv1.MatcherProperties{}}, nil
}

func (r rawMatcher) Describe(_ context.Context, req *matchv1.DescribeRequest) (*matchv1.DescribeResponse, error) {
	good := &matchv1.Operator{Id: "raw/good", Purity: 99, Missing: 99, CacheTtl: durationpb.New(-time.Hour)}
	switch r.of(req.GetInstanceId()) {
	case "describe":
		return &matchv1.DescribeResponse{}, nil
	case "operators":
		return &matchv1.DescribeResponse{Described: true, Operators: []*matchv1.Operator{
			{Id: "exact"}, {Id: "Raw/Loud"}, good, good, {Id: "raw/schema", ValueSchema: []byte(`{`)}, {},
		}}, nil
	}
	return &matchv1.DescribeResponse{Described: true, Operators: []*matchv1.Operator{good}}, nil
}

func (r rawMatcher) Compile(_ context.Context, req *matchv1.CompileRequest) (*matchv1.CompileResponse, error) {
	if r.of(req.GetInstanceId()) == "zero" {
		return &matchv1.CompileResponse{Results: []*matchv1.CompileResult{{}}}, nil
	}
	return &matchv1.CompileResponse{}, nil
}

func (r rawMatcher) MatchBatch(_ context.Context, req *matchv1.MatchBatchRequest) (*matchv1.MatchBatchResponse, error) {
	all := make([]byte, len(req.GetPairProgram()))
	switch r.of(req.GetInstanceId()) {
	case "more":
		return &matchv1.MatchBatchResponse{Verdicts: append(all, 2)}, nil
	case "verdict":
		for i := range all {
			all[i] = byte(2 + 97*(i%2))
		}
		return &matchv1.MatchBatchResponse{Verdicts: all, Ttl: durationpb.New(-time.Hour)}, nil
	case "needs":
		return &matchv1.MatchBatchResponse{Verdicts: all, NeedPrograms: []uint32{7}}, nil
	case "repeats":
		return &matchv1.MatchBatchResponse{Verdicts: all, NeedPrograms: []uint32{0}}, nil
	case "forgets": // knows of no program whose value does not come along
		out := &matchv1.MatchBatchResponse{Verdicts: all, DataVersion: "7"}
		for i, p := range req.GetPrograms() {
			if len(p.GetValueJson()) == 0 {
				out.NeedPrograms = append(out.NeedPrograms, uint32(i))
			}
		}
		for i, p := range req.GetPairProgram() {
			if len(req.GetPrograms()[p].GetValueJson()) > 0 {
				all[i] = 2
			}
		}
		return out, nil
	}
	return &matchv1.MatchBatchResponse{}, nil
}
