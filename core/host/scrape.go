package host

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

const (
	metricsFeature = "plugin/metrics/v1"
	maxSeries      = 1000    // of one instance
	maxMetricsText = 1 << 20 // of one instance
	// metricPrefix keeps what plugins count apart from what the server counts.
	metricPrefix = "plugin_"
)

// collected is what plugins count themselves. It is pulled from time to time and
// shown with the server's own metrics, each series with the instance it is from.
type collected struct {
	mu         sync.Mutex
	byInstance map[string][]*dto.MetricFamily
}

var _ prometheus.Collector = (*collected)(nil)

// Describe says nothing: nobody knows beforehand what plugins count.
func (c *collected) Describe(chan<- *prometheus.Desc) {}

// Collect shows what was pulled last.
func (c *collected) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The first to use a name says what it means; whoever means something else
	// by it is not shown, for the whole answer would be invalid.
	known := map[string]*dto.MetricFamily{}
	for _, instance := range slices.Sorted(maps.Keys(c.byInstance)) {
		for _, f := range c.byInstance[instance] {
			first, ok := known[f.GetName()]
			if !ok {
				known[f.GetName()], first = f, f
			}
			if first.GetType() != f.GetType() {
				continue
			}
			desc := prometheus.NewDesc(first.GetName(), first.GetHelp(), nil, nil)
			for _, m := range f.GetMetric() {
				out <- pulled{desc, m}
			}
		}
	}
}

// pulled is one series of a plugin.
type pulled struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

func (p pulled) Desc() *prometheus.Desc { return p.desc }

// Write hands out the series, labels and all.
func (p pulled) Write(out *dto.Metric) error {
	out.Label, out.Gauge, out.Counter, out.Untyped = p.metric.Label, p.metric.Gauge, p.metric.Counter, p.metric.Untyped
	out.Summary, out.Histogram = p.metric.Summary, p.metric.Histogram
	return nil
}

// keep replaces what is known of an instance; nothing forgets it.
func (c *collected) keep(instance string, families []*dto.MetricFamily) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(families) == 0 {
		delete(c.byInstance, instance)
		return
	}
	c.byInstance[instance] = families
}

// scrape pulls what every running instance counts.
func (h *Host) scrape(ctx context.Context) {
	h.mu.Lock()
	instances := h.instances
	h.mu.Unlock()
	for _, s := range instances {
		s.scrape(ctx)
	}
}

func (s *supervisor) scrape(ctx context.Context) {
	session := s.gate.enter()
	if session == nil {
		s.host.metrics.plugins.keep(s.name, nil)
		return
	}
	defer session.busy.leave()
	if !slices.Contains(session.info.GetFeatures(), metricsFeature) {
		return
	}
	var out *pluginv1.MetricsResponse
	err := session.call(ctx, "metrics", session.timeouts.Health, func(ctx context.Context) (_ string, err error) {
		out, err = session.plugin.Metrics(ctx, &pluginv1.MetricsRequest{InstanceIds: []string{s.name}})
		return accepted(out.GetCollected()), err
	})
	if err != nil {
		return // the health check finds out what is wrong
	}
	for _, in := range out.GetInstances() {
		if in.GetInstanceId() != s.name {
			continue
		}
		families, dropped, err := readMetrics(in.GetOpenmetrics(), s.name, session.info.GetName())
		if err != nil || dropped > 0 {
			s.host.metrics.breaches.WithLabelValues(s.name, "bad_metrics").Inc()
			s.log.Debug("metrics of a plugin were dropped", zap.Int("series", dropped), zap.Error(err))
		}
		s.host.metrics.plugins.keep(s.name, families)
	}
}

// readMetrics reads a plugin's metrics: names get our prefix, every series the
// instance and the plugin, and what is over the limit is dropped and counted.
func readMetrics(text []byte, instance, plugin string) (out []*dto.MetricFamily, dropped int, err error) {
	if len(text) > maxMetricsText || !utf8.Valid(text) {
		return nil, 1, nil
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	series := 0
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		kept := f.Metric[:0]
		for _, m := range f.GetMetric() {
			m.Label = relabel(m.GetLabel(), instance, plugin)
			key := name + " " + labelKey(m.GetLabel())
			if series++; series > maxSeries || seen[key] {
				dropped++
				continue
			}
			seen[key] = true
			kept = append(kept, m)
		}
		if f.Metric = kept; len(kept) > 0 {
			whole := metricPrefix + name
			f.Name = &whole
			out = append(out, f)
		}
	}
	return out, dropped, nil
}

// relabel names the instance and the plugin; whatever the plugin says of that is
// not believed.
func relabel(labels []*dto.LabelPair, instance, plugin string) []*dto.LabelPair {
	labels = slices.DeleteFunc(labels, func(l *dto.LabelPair) bool {
		return l.GetName() == "instance" || l.GetName() == "plugin" || strings.HasPrefix(l.GetName(), "__")
	})
	for name, value := range map[string]string{"instance": instance, "plugin": plugin} {
		labels = append(labels, &dto.LabelPair{Name: &name, Value: &value})
	}
	slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return labels
}

func labelKey(labels []*dto.LabelPair) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
	}
	return b.String()
}
