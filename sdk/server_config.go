package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// ConfigSchema describes the config, with defaults.
func (s *server) ConfigSchema(_ context.Context, req *pluginv1.ConfigSchemaRequest) (*pluginv1.ConfigSchemaResponse, error) {
	k, err := s.plugin.kind(req.GetKind())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	config := k.config()
	if config == nil {
		return &pluginv1.ConfigSchemaResponse{JsonSchema: Schema(nil), DefaultsJson: []byte("{}")}, nil
	}
	defaults, err := json.Marshal(defaultsOf(reflect.ValueOf(config).Elem()))
	if err != nil {
		return nil, fmt.Errorf("encode defaults: %w", err)
	}
	return &pluginv1.ConfigSchemaResponse{
		JsonSchema: Schema(config), SecretPointers: pointers(config), DefaultsJson: defaults,
	}, nil
}

// Validate checks a config and keeps nothing.
func (s *server) Validate(_ context.Context, req *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	k, err := s.plugin.kind(req.GetKind())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	_, problems := newInstance(req.GetInstanceId(), k).build(req.GetConfig())
	return &pluginv1.ValidateResponse{Diagnostics: problems, Valid: len(problems) == 0}, nil
}

// Configure makes an instance or gives it a new config, which the next Open
// uses. The instance keeps working with the old one when the new one is wrong.
func (s *server) Configure(ctx context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	id := req.GetInstanceId()
	if id == "" {
		return &pluginv1.ConfigureResponse{Error: errorToProto(Errorf(ClassInternal, "no_instance", "no instance was named"))}, nil
	}
	k, err := s.plugin.kind(req.GetKind())
	if err != nil {
		return &pluginv1.ConfigureResponse{Error: errorToProto(AsError(err))}, nil
	}
	in := s.instance(id)
	if in == nil {
		in = newInstance(id, k)
	} else if refused := in.refuses(req); refused != nil {
		return &pluginv1.ConfigureResponse{Error: errorToProto(refused)}, nil
	}
	if _, problems := in.build(req.GetConfig()); len(problems) > 0 {
		return &pluginv1.ConfigureResponse{Diagnostics: problems}, nil
	}
	if err := in.reconfigure(ctx, req); err != nil {
		in.log.Warn("close before a new config failed", "error", err.Error())
	}
	s.mu.Lock()
	s.instances[id] = in
	s.mu.Unlock()
	return &pluginv1.ConfigureResponse{Accepted: true}, nil
}

// refuses returns why the instance rejects the request, or nil.
func (in *instance) refuses(req *pluginv1.ConfigureRequest) *Error {
	in.state.Lock()
	defer in.state.Unlock()
	if req.GetKind() != pluginv1.Kind_KIND_UNSPECIFIED && req.GetKind() != in.kind.number {
		return Errorf(ClassInternal, "wrong_kind", "instance %q is a %s", in.id, in.kind.name)
	}
	if req.GetGeneration() < in.generation {
		return Errorf(ClassInternal, "old_generation", "generation %d is older than %d", req.GetGeneration(), in.generation)
	}
	return nil
}

// reconfigure keeps the config. The same generation with the same config
// changes nothing; otherwise an open value is closed and waits for an Open.
func (in *instance) reconfigure(ctx context.Context, req *pluginv1.ConfigureRequest) error {
	in.state.Lock()
	same := in.generation == req.GetGeneration() && in.config != nil && sameConfig(in.config, req.GetConfig())
	in.generation = req.GetGeneration()
	in.state.Unlock()
	if same {
		return nil
	}
	in.use.Lock()
	defer in.use.Unlock()
	err := in.closeLocked(in.context(ctx))
	in.state.Lock()
	in.config = req.GetConfig()
	in.state.Unlock()
	return err
}
