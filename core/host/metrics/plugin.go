package metrics

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	maxSeries = 1000    // per instance
	maxSource = 1 << 20 // bytes per instance
	// prefix separates the metrics of plugins from those of the server.
	prefix = "plugin_"
)

// PluginMetrics collects the metrics that plugins count themselves. The host pulls
// them periodically; every series carries the label of its instance.
type PluginMetrics struct {
	mu         sync.Mutex
	byInstance map[string][]*dto.MetricFamily
}

var _ prometheus.Collector = (*PluginMetrics)(nil)

// Describe sends nothing: the metrics of plugins are not known in advance.
func (c *PluginMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics that were pulled last.
func (c *PluginMetrics) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The first instance with a name defines its type. Metrics of another type
	// are left out: they would make the whole exposition invalid.
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
				out <- pluginMetric{desc, m}
			}
		}
	}
}

// pulled is one series of a plugin.
type pluginMetric struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

func (p pluginMetric) Desc() *prometheus.Desc { return p.desc }

// Write copies the series with its labels.
func (p pluginMetric) Write(out *dto.Metric) error {
	out.Label, out.Gauge, out.Counter, out.Untyped = p.metric.Label, p.metric.Gauge, p.metric.Counter, p.metric.Untyped
	out.Summary, out.Histogram = p.metric.Summary, p.metric.Histogram
	return nil
}

// Keep replaces the metrics of an instance; an empty list removes it.
func (c *PluginMetrics) Keep(instance string, families []*dto.MetricFamily) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(families) == 0 {
		delete(c.byInstance, instance)
		return
	}
	c.byInstance[instance] = families
}

// Parse parses metrics in the Prometheus text format. It adds the prefix to names and
// the labels of instance and plugin to series. dropped counts series above the limit
// and duplicates.
func Parse(source []byte, instance, plugin string) (out []*dto.MetricFamily, dropped int, err error) {
	if len(source) > maxSource || !utf8.Valid(source) {
		return nil, 1, nil
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(source))
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
			whole := prefix + name
			f.Name = &whole
			out = append(out, f)
		}
	}
	return out, dropped, nil
}

// relabel sets the labels of instance and plugin in place of the plugin's own.
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
