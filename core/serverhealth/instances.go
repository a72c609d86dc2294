package serverhealth

import (
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// MaxInstances is how many plugin instances have series. Others have none.
const MaxInstances = 32

// Families of metrics of plugins.
const (
	pluginState    = "guidon_plugin_state" // has each instance
	callSeconds    = "guidon_plugin_call_seconds"
	messageResults = "guidon_notifications_results_total"
	deliverEvents  = "guidon_ingestion_deliver_events_total"
)

// instanceDefinitions are the series of one plugin instance. What its kind does not have is
// without values or 0.
var instanceDefinitions = []definition{
	{name: "lag_requests", unit: number, help: "Requests with events that the sink does not have.", kind: sum, metrics: []string{"guidon_journal_reader_lag_records", "guidon_log_reader_lag_records"}},
	{name: "lag_seconds", unit: seconds, help: "Age of the oldest event that the sink does not have.", kind: most, metrics: lagSeconds},
	{name: "delivered", unit: perSecond, help: "Events that the sink has confirmed, or messages that the notifier has delivered.", metrics: []string{deliverEvents, messageResults}, match: isDelivered, fromZero: true},
	{name: "calls", unit: perSecond, help: "Calls with batches, messages or questions.", metrics: []string{callSeconds}, match: isWork, fromZero: true},
	{name: "call_errors", unit: number, help: "Calls of these that failed or were refused. A sink is asked again.", kind: count, metrics: []string{callSeconds}, match: isFailedWork, fromZero: true},
	{name: "failed_messages", unit: number, help: "Attempts to deliver a message that failed.", kind: count, metrics: []string{messageResults}, match: isFailedMessage, fromZero: true},
	{name: "dead_letters", unit: number, help: "Events that the sink refused, kept as dead letters.", kind: count, metrics: []string{"guidon_ingestion_dead_letters_total"}, fromZero: true},
	{name: "restarts", unit: number, help: "Processes started after the first.", kind: count, metrics: []string{"guidon_plugin_restarts_total"}, fromZero: true},
	{name: "call_p50", unit: seconds, help: "Half of the calls take less.", kind: quantile, q: 0.5, metrics: []string{callSeconds}, match: isWork},
	{name: "call_p99", unit: seconds, help: "99 of 100 calls take less.", kind: quantile, q: 0.99, metrics: []string{callSeconds}, match: isWork},
}

// InstanceBytes is the memory of the series of one instance.
var InstanceBytes = func() int { t := newTable(instanceDefinitions); return t.bytes() }()

// instanceFamilies has the families of instanceDefinitions.
var instanceFamilies = func() map[string]bool {
	out := map[string]bool{}
	for _, d := range instanceDefinitions {
		for _, m := range d.metrics {
			out[m] = true
		}
	}
	return out
}()

// InstanceSeries returns the series of a plugin instance, in a fixed order.
func InstanceSeries() []Series { return describe(instanceDefinitions) }

// instance has the series of a plugin instance.
type instance struct {
	table

	previous sample
}

// InstanceRange is a Range of the series of plugin instances.
type InstanceRange struct {
	From    time.Time
	Step    time.Duration
	Values  map[string][][]float64 // by instance, then in the order of the names
	LeftOut int                    // instances without series: there are more than MaxInstances
}

// ReadInstances is Read for the series of plugin instances: of the one named only, of all
// for "".
func (r *Recorder) ReadInstances(only string, names []string, from, to time.Time, step time.Duration) InstanceRange {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	none := r.server.read(nil, from, to, step, now)
	out := InstanceRange{From: none.From, Step: none.Step, Values: map[string][][]float64{}, LeftOut: r.leftOut}
	for name, i := range r.instances {
		if only == "" || name == only {
			out.Values[name] = i.read(names, from, to, step, now).Values
		}
	}
	return out
}

// sampleInstances adds the values of each instance. The caller holds mu.
func (r *Recorder) sampleInstances(now time.Time, named map[string][]*dto.Metric) {
	by := byInstance(named)
	maps.DeleteFunc(r.instances, func(name string, _ *instance) bool { return by[name] == nil })
	r.leftOut = 0
	for _, name := range slices.Sorted(maps.Keys(by)) {
		i := r.instances[name]
		if i == nil && len(r.instances) >= MaxInstances {
			r.leftOut++
			continue
		}
		if i == nil {
			i = &instance{table: newTable(instanceDefinitions)}
			r.instances[name] = i
		}
		next := newSample(now, instanceDefinitions, by[name])
		i.add(now, next.since(instanceDefinitions, &i.previous))
		i.previous = next
	}
}

// byInstance returns the metrics of each instance of a plugin, by family.
func byInstance(named map[string][]*dto.Metric) map[string]map[string][]*dto.Metric {
	out := map[string]map[string][]*dto.Metric{}
	for _, m := range named[pluginState] {
		out[label(m, "instance")] = map[string][]*dto.Metric{}
	}
	for family := range instanceFamilies {
		for _, m := range named[family] {
			if own := out[instanceOf(m)]; own != nil {
				own[family] = append(own[family], m)
			}
		}
	}
	return out
}

// instanceOf returns the instance that a metric of one of the families is about, "" for
// none: other readers and sources.
func instanceOf(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "instance", "sink", "notifier":
			return l.GetValue()
		case "reader", "source":
			name, ok := strings.CutPrefix(l.GetValue(), "sink/")
			if !ok {
				return ""
			}
			return name
		}
	}
	return ""
}

// Outcomes of calls and messages that are none of an error.
var done = []string{"ok", "committed", "staged", "partial", "delivered", "duplicate"}

// isWork leaves out calls of the host for itself, such as health and metrics.
func isWork(m *dto.Metric) bool {
	return slices.Contains([]string{"write_batch", "notify", "match_batch"}, label(m, "method"))
}

func isFailedWork(m *dto.Metric) bool { return isWork(m) && isFailedMessage(m) }

func isFailedMessage(m *dto.Metric) bool { return !slices.Contains(done, label(m, "outcome")) }

func isDelivered(m *dto.Metric) bool {
	outcome := label(m, "outcome")
	return outcome == "" || outcome == "delivered" // events have no outcome
}
