package sdk

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// Metrics returns the metrics of instances that have some. An instance that is
// being opened or closed is not waited for.
func (s *server) Metrics(ctx context.Context, req *pluginv1.MetricsRequest) (*pluginv1.MetricsResponse, error) {
	s.mu.Lock()
	ids := req.GetInstanceIds()
	if len(ids) == 0 {
		ids = slices.Sorted(maps.Keys(s.instances))
	}
	var instances []*instance
	for _, id := range ids {
		if in := s.instances[id]; in != nil {
			instances = append(instances, in)
		}
	}
	s.mu.Unlock()
	out := &pluginv1.MetricsResponse{Collected: true}
	for _, in := range instances {
		text, err := in.metrics(ctx)
		if err != nil {
			in.log.Debug("no metrics", "error", err.Error())
			out.Collected = false
			continue
		}
		if len(text) > 0 {
			out.Instances = append(out.Instances, &pluginv1.InstanceMetrics{InstanceId: in.id, Openmetrics: text})
		}
	}
	return out, nil
}

// metrics returns the metrics of one instance; nil for a plugin without metrics.
func (in *instance) metrics(ctx context.Context) (text []byte, err error) {
	if !in.use.TryRLock() {
		return nil, Errorf(ClassTransient, "busy", "the instance is being opened or closed")
	}
	defer in.use.RUnlock()
	if in.value == nil {
		return nil, nil
	}
	m, ok := in.value.author().(Metricser)
	if !ok {
		return nil, nil
	}
	err = guard(in.log, func() error {
		text, err = m.Metrics(in.context(ctx))
		return err
	})
	return text, err
}

// SetLogLevel changes what the process logs.
func (s *server) SetLogLevel(_ context.Context, req *pluginv1.SetLogLevelRequest) (*pluginv1.SetLogLevelResponse, error) {
	if err := setLogLevel(req.GetLevel()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &pluginv1.SetLogLevelResponse{Set: true}, nil
}
