package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

const (
	housekeepingInterval = 15 * time.Second
	// firstHousekeeping is about when the plugins have started.
	firstHousekeeping = time.Second
	warningInterval   = time.Minute

	metricsFeature = "plugin/metrics/v1"
)

// runHousekeeping periodically measures processes, pulls the metrics of plugins, looks
// for replaced executables and warns of unverified ones, until ctx ends.
func (h *Host) runHousekeeping(ctx context.Context) {
	tick := time.NewTimer(firstHousekeeping)
	defer tick.Stop()
	var warned time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(housekeepingInterval)
		}
		h.measureProcesses()
		for _, s := range h.supervisors() {
			s.pullMetrics(ctx)
			s.checkInstalledFile()
		}
		if time.Since(warned) >= warningInterval && h.warnUnverified() {
			warned = time.Now()
		}
	}
}

// warnUnverified warns of executables without a checksum, and reports whether there
// are any.
func (h *Host) warnUnverified() bool {
	var names []string
	for _, st := range h.Status() {
		value := 0.0
		if st.Unverified {
			value = 1
			names = append(names, st.Name)
		}
		h.metrics.Unverified.WithLabelValues(st.Name).Set(value)
	}
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	h.log.Warn("DEVELOPMENT MODE: plugins.dev is on and these plugins run without a checksum; whoever can write their files can run code here: " + strings.Join(names, ", "))
	return true
}

// measureProcesses records the resource usage of the processes.
func (h *Host) measureProcesses() {
	h.metrics.Memory.Reset()
	for _, st := range h.Status() {
		if st.PID == 0 {
			continue
		}
		if rss, cpu, ok := process.Usage(st.PID); ok {
			h.metrics.SetUsage(st.Name, st.PID, rss, cpu)
		}
	}
}

// pullMetrics stores the metrics of the plugin. Errors are left to the health check.
func (i *instance) pullMetrics(ctx context.Context) {
	s := i.gate.Enter()
	if s == nil {
		i.metrics.Plugins.Keep(i.name, nil)
		return
	}
	defer s.InFlight.Done()
	if !slices.Contains(s.Info.GetFeatures(), metricsFeature) {
		return
	}
	var out *pluginv1.MetricsResponse
	err := s.Call(ctx, "metrics", s.Timeouts.Health, func(ctx context.Context) (_ string, err error) {
		out, err = s.Plugin.Metrics(ctx, &pluginv1.MetricsRequest{InstanceIds: []string{i.name}})
		return metrics.Outcome(out.GetCollected()), err
	})
	if err != nil {
		return
	}
	for _, in := range out.GetInstances() {
		if in.GetInstanceId() != i.name {
			continue
		}
		families, dropped, err := metrics.Parse(in.GetOpenmetrics(), i.name, s.Info.GetName())
		if err != nil || dropped > 0 {
			i.metrics.ContractViolations.WithLabelValues(i.name, "bad_metrics").Inc()
			i.log.Debug("plugin metrics dropped", zap.Int("series", dropped), zap.Error(err))
		}
		i.metrics.Plugins.Keep(i.name, families)
	}
}
