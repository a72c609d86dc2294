package serverhealth

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// Units of series.
const (
	perSecond = "per second"
	seconds   = "seconds"
	bytes     = "bytes"
	number    = "number"
	percent   = "percent"
)

// kind is how a series is made of metrics.
type kind int

const (
	rate     kind = iota // the increase per second of the sum of counters
	count                // the increase of the sum of counters
	sum                  // the sum of gauges
	most                 // the largest gauge
	quantile             // a quantile of histograms
)

// definition is a series.
type definition struct {
	name, unit, help string
	kind             kind
	metrics          []string               // the families; those that the server does not have are left out
	match            func(*dto.Metric) bool // nil: all metrics of the families
	minus            string                 // a family that is subtracted
	q                float64                // of a quantile
	scale            float64                // 0: 1
	fromZero         bool                   // a missing counter is 0: it appears with its first value
}

// Series describes a series.
type Series struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Help string `json:"-"`
}

// List returns all series of the server, in a fixed order.
func List() []Series { return describe(definitions) }

func describe(list []definition) []Series {
	out := make([]Series, len(list))
	for i, d := range list {
		out[i] = Series{d.name, d.unit, d.help}
	}
	return out
}

// wanted has the families that are read.
var wanted = func() map[string]bool {
	out := map[string]bool{pluginState: true}
	for _, d := range slices.Concat(definitions, instanceDefinitions) {
		for _, m := range d.metrics {
			out[m] = true
		}
		if d.minus != "" {
			out[d.minus] = true
		}
	}
	return out
}()

// Families of metrics that several series are made of.
const (
	eventsRefused = "guidon_ingestion_events_refused_total"
	httpRequests  = "guidon_http_requests_total"
	httpSeconds   = "guidon_http_request_duration_seconds"
	querySeconds  = "guidon_database_query_seconds"
	diskFree      = "guidon_data_disk_free_bytes"
	diskSize      = "guidon_data_disk_size_bytes"
)

var lagSeconds = []string{"guidon_journal_reader_lag_seconds", "guidon_log_reader_lag_seconds"}

var definitions = []definition{
	{name: "events_accepted", unit: perSecond, help: "Events on disk and acknowledged.", metrics: []string{"guidon_ingestion_events_accepted_total"}},
	{name: "events_refused", unit: perSecond, help: "Events that capture did not take.", metrics: []string{eventsRefused}, fromZero: true},
	{name: "events_over_quota", unit: perSecond, help: "Of those, events of projects over their quota.", metrics: []string{eventsRefused}, match: hasReason("events_over_quota"), fromZero: true},
	{name: "events_wrong_key", unit: perSecond, help: "Of those, events without a valid project key.", metrics: []string{eventsRefused}, match: hasReason("invalid_api_key"), fromZero: true},
	{name: "events_processed", unit: perSecond, help: "Events that every stage has processed.", metrics: []string{"guidon_ingestion_events_processed_total"}},
	{name: "dead_letters", unit: perSecond, help: "Events kept as dead letters.", metrics: []string{"guidon_ingestion_dead_letters_total"}, fromZero: true},
	{name: "capture_requests", unit: perSecond, help: "Requests of capture.", metrics: []string{httpRequests}, match: isCapture, fromZero: true},
	{name: "decide_requests", unit: perSecond, help: "Requests for flags.", metrics: []string{httpRequests}, match: isDecide, fromZero: true},
	{name: "management_requests", unit: perSecond, help: "Requests below /api.", metrics: []string{httpRequests}, match: isManagement, fromZero: true},
	{name: "responses_4xx", unit: perSecond, help: "Answers that refuse a request as wrong.", metrics: []string{httpRequests}, match: isRefused, fromZero: true},
	{name: "responses_5xx", unit: perSecond, help: "Answers with an error of the server.", metrics: []string{httpRequests}, match: hasStatus("5xx"), fromZero: true},
	{name: "requests_refused", unit: perSecond, help: "Requests and connections refused for a limit.", metrics: []string{"guidon_http_refused_total"}, fromZero: true},
	{name: "capture_p50", unit: seconds, help: "Half of the requests of capture take less.", kind: quantile, q: 0.5, metrics: []string{httpSeconds}, match: isCapture},
	{name: "capture_p95", unit: seconds, help: "95 of 100 requests of capture take less.", kind: quantile, q: 0.95, metrics: []string{httpSeconds}, match: isCapture},
	{name: "capture_p99", unit: seconds, help: "99 of 100 requests of capture take less.", kind: quantile, q: 0.99, metrics: []string{httpSeconds}, match: isCapture},
	{name: "decide_p50", unit: seconds, help: "Half of the requests for flags take less.", kind: quantile, q: 0.5, metrics: []string{httpSeconds}, match: isDecide},
	{name: "decide_p95", unit: seconds, help: "95 of 100 requests for flags take less.", kind: quantile, q: 0.95, metrics: []string{httpSeconds}, match: isDecide},
	{name: "decide_p99", unit: seconds, help: "99 of 100 requests for flags take less.", kind: quantile, q: 0.99, metrics: []string{httpSeconds}, match: isDecide},
	{name: "lag_worker", unit: seconds, help: "Age of the oldest event that is not processed; with a shared log of the partitions of this node.", kind: most, metrics: lagSeconds, match: isReader(func(n string) bool { return n == "worker" })},
	{name: "lag_imports", unit: seconds, help: "The same for imports.", kind: most, metrics: lagSeconds, match: isReader(func(n string) bool { return n == "worker/historical" })},
	{name: "lag_sinks", unit: seconds, help: "Age of the oldest event that a sink does not have, of the sink that is furthest behind.", kind: most, metrics: lagSeconds, match: isReader(func(n string) bool { return strings.HasPrefix(n, "sink/") })},
	{name: "lag_clickhouse", unit: seconds, help: "Age of the oldest batch that waits for ClickHouse.", kind: most, metrics: []string{"guidon_events_outbox_oldest_seconds"}},
	{name: "journal_append_p99", unit: seconds, help: "99 of 100 appends to the journal or shared log take less.", kind: quantile, q: 0.99, metrics: []string{"guidon_journal_append_seconds", "guidon_log_append_seconds"}},
	{name: "journal_bytes", unit: bytes, help: "Size of the journal's files.", kind: sum, metrics: []string{"guidon_journal_file_bytes"}},
	{name: "disk_free", unit: bytes, help: "Space on the disk of data_dir that the server may use.", kind: sum, metrics: []string{diskFree}},
	{name: "disk_used", unit: bytes, help: "The rest of that disk.", kind: sum, metrics: []string{diskSize}, minus: diskFree},
	{name: "database_bytes", unit: bytes, help: "Size of the SQLite file with its write-ahead log.", kind: sum, metrics: []string{"guidon_database_file_bytes", "guidon_database_wal_bytes"}},
	{name: "database_query_p50", unit: seconds, help: "Half of the statements take less.", kind: quantile, q: 0.5, metrics: []string{querySeconds}, match: isStatement},
	{name: "database_query_p99", unit: seconds, help: "99 of 100 statements take less.", kind: quantile, q: 0.99, metrics: []string{querySeconds}, match: isStatement},
	{name: "database_commit_p99", unit: seconds, help: "99 of 100 commits take less.", kind: quantile, q: 0.99, metrics: []string{querySeconds}, match: func(m *dto.Metric) bool { return label(m, "kind") == "commit" }},
	{name: "memory", unit: bytes, help: "Resident memory of the process.", kind: sum, metrics: []string{"process_resident_memory_bytes"}},
	{name: "heap", unit: bytes, help: "Memory of Go's heap in use.", kind: sum, metrics: []string{"go_memstats_heap_inuse_bytes"}},
	{name: "goroutines", unit: number, help: "Goroutines.", kind: sum, metrics: []string{"go_goroutines"}},
	{name: "cpu", unit: percent, help: "CPU time; 100 is one core.", metrics: []string{"process_cpu_seconds_total"}, scale: 100},
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// capturePaths are the routes that take events.
var capturePaths = []string{"/capture", "/batch", "/e", "/track", "/engage"}

func isCapture(m *dto.Metric) bool {
	r := label(m, "route")
	return slices.Contains(capturePaths, r) || strings.HasPrefix(r, "/i/")
}

func isDecide(m *dto.Metric) bool {
	r := label(m, "route")
	return r == "/decide" || r == "/flags" || strings.HasPrefix(r, "/ofrep/")
}

func isManagement(m *dto.Metric) bool { return strings.HasPrefix(label(m, "route"), "/api/") }

func isStatement(m *dto.Metric) bool { return label(m, "kind") != "commit" }

func hasStatus(class string) func(*dto.Metric) bool {
	return func(m *dto.Metric) bool { return label(m, "status") == class }
}

// isRefused leaves out a browser that asks who is signed in: on the page that signs in no
// person is, and nothing is wrong then.
func isRefused(m *dto.Metric) bool {
	return hasStatus("4xx")(m) && (label(m, "method") != "GET" || label(m, "route") != "/api/session")
}

func hasReason(reason string) func(*dto.Metric) bool {
	return func(m *dto.Metric) bool { return label(m, "reason") == reason }
}

func isReader(f func(name string) bool) func(*dto.Metric) bool {
	return func(m *dto.Metric) bool { return f(label(m, "reader")) }
}
