package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// rawSink is a sink whose answers are empty messages: each
// call answers nothing when the config names it.
type rawSink struct {
	*raw
	sinkv1.UnimplementedSinkServiceServer
}

type rawSinkRegistrar struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (rawSinkRegistrar) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	r := rawSink{raw: &raw{answer: map[string]string{}}}
	pluginv1.RegisterPluginServiceServer(s, r)
	sinkv1.RegisterSinkServiceServer(s, r)
	return nil
}

func (rawSinkRegistrar) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("a plugin does not call itself")
}

func (r rawSink) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	return &pluginv1.InfoResponse{
		Name: "rawsink", Version: "1.0.0", Kinds: []pluginv1.Kind{pluginv1.Kind_KIND_SINK}, MaxMessageBytes: 1 << 20,
	}, nil
}

func (r rawSink) ConfigSchema(context.Context, *pluginv1.ConfigSchemaRequest) (*pluginv1.ConfigSchemaResponse, error) {
	return &pluginv1.ConfigSchemaResponse{JsonSchema: []byte(`{"type": 7}`)}, nil // not one
}

func (r rawSink) Configure(ctx context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	out, err := r.raw.Configure(ctx, req)
	if r.of(req.GetInstanceId()) == "configure" {
		return &pluginv1.ConfigureResponse{}, nil
	}
	return out, err
}

func (r rawSink) Health(ctx context.Context, req *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	for _, id := range req.GetInstanceIds() {
		if r.of(id) == "health" {
			return &pluginv1.HealthResponse{}, nil
		}
	}
	out, err := r.raw.Health(ctx, req)
	for _, in := range out.GetInstances() {
		switch r.of(in.GetInstanceId()) {
		case "failed":
			in.Status, in.Error = pluginv1.InstanceHealth_STATUS_FAILED, &pluginv1.Error{Class: pluginv1.Error_CLASS_TRANSIENT, Code: "disk", Message: "the disk is full"}
		case "degraded":
			in.Status, in.Error = pluginv1.InstanceHealth_STATUS_DEGRADED, &pluginv1.Error{Class: pluginv1.Error_CLASS_TRANSIENT, Code: "disk", Message: "the disk is slow"}
		}
	}
	return out, err
}

func (r rawSink) Open(_ context.Context, req *sinkv1.OpenRequest) (*sinkv1.OpenResponse, error) {
	switch r.of(req.GetInstanceId()) {
	case "open":
		return &sinkv1.OpenResponse{}, nil
	case "exception":
		return nil, errors.New("the database is away")
	case "properties":
		return &sinkv1.OpenResponse{Opened: true}, nil
	case "limits":
		return &sinkv1.OpenResponse{Opened: true, Properties: &sinkv1.SinkProperties{
			MaxInFlight: 1 << 31, MaxBytes: 1 << 63, MaxStagedEvents: 1 << 63, Linger: durationpb.New(-time.Hour), MaxStagedAge: durationpb.New(-time.Hour),
			Ordering: 99, Dedup: 99, Commit: 99, Durability: 99,
		}}, nil
	}
	return &sinkv1.OpenResponse{Opened: true, Properties: &sinkv1.SinkProperties{}}, nil
}

func (r rawSink) WriteBatch(context.Context, *sinkv1.WriteBatchRequest) (*sinkv1.WriteBatchResponse, error) {
	return &sinkv1.WriteBatchResponse{}, nil
}

func (r rawSink) Flush(context.Context, *sinkv1.FlushRequest) (*sinkv1.FlushResponse, error) {
	return &sinkv1.FlushResponse{}, nil
}

func TestEmptyAnswersAreNoSuccess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		answer string
		state  lifecycle.State
		says   string
	}{
		{"configure", lifecycle.StateQuarantined, "neither accepted nor refused"},
		{"open", lifecycle.StateConfigured, "neither done nor refused"},
		{"exception", lifecycle.StateConfigured, "the database is away"}, // and no exit counts
		{"properties", lifecycle.StateConfigured, "neither done nor refused"},
		{"health", lifecycle.StateQuarantined, "says that it does not serve"},
		{"failed", lifecycle.StateConfigured, "the disk is full"}, // although Open succeeds each time
		{"degraded", lifecycle.StateDegraded, "the disk is slow"},
	}
	for _, tt := range tests {
		t.Run(tt.answer, func(t *testing.T) {
			t.Parallel()
			cfg := config(instance("p", "rawsink", map[string]any{"answer": tt.answer}))
			cfg.Restart.QuarantineExits = 1
			r := start(t, cfg)
			eventually(t, func() string {
				st := r.Status()[0]
				if st.State == tt.state && strings.Contains(st.LastError, tt.says) {
					return ""
				}
				return fmt.Sprintf("%s: %s", st.State, st.LastError)
			})
		})
	}
	t.Run("write", func(t *testing.T) {
		t.Parallel()
		r := start(t, config(instance("p", "rawsink", map[string]any{"answer": ""})))
		s := r.sink(t)
		if _, err := s.Write(t.Context(), batch("b", 0, 3)); err == nil || !strings.Contains(err.Error(), "no_outcome") {
			t.Errorf("%v", err)
		}
		if s.CommittedThrough() != 0 {
			t.Errorf("committed through %d", s.CommittedThrough())
		}
		if r.logs.FilterMessage("plugin config schema invalid").Len() == 0 {
			t.Error("the log does not report the invalid schema")
		}
	})
}

func TestSinkPropertiesAreLimited(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("a", "rawsink", map[string]any{"answer": ""}), instance("b", "rawsink", map[string]any{"answer": "limits"})))
	for i, want := range []sdk.SinkProperties{
		{MaxInFlight: 1, MaxBytes: 768 << 10}, // three quarters of the largest message
		{MaxInFlight: 64, MaxBytes: 768 << 10, MaxStagedEvents: 1 << 40},
	} {
		ready(t, r, r.Sinks()[i])
		want.Ordering, want.Dedup, want.Durability = sdk.OrderNone, sdk.DedupNone, sdk.DurabilityMemory
		if got := r.Sinks()[i].Properties(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
