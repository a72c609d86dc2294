package app_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse"
)

// namedMetrics is a registry that keeps the name of each metric, also of those that
// have no value yet.
type namedMetrics struct {
	*prometheus.Registry
	mu    sync.Mutex
	names map[string]bool
}

var metricName = regexp.MustCompile(`fqName: "([^"]+)"`)

// Register implements prometheus.Registerer.
func (n *namedMetrics) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() { c.Describe(descs); close(descs) }()
	n.mu.Lock()
	for d := range descs {
		n.names[metricName.FindStringSubmatch(d.String())[1]] = true
	}
	n.mu.Unlock()
	return n.Registry.Register(c)
}

// MustRegister implements prometheus.Registerer.
func (n *namedMetrics) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := n.Register(c); err != nil {
			panic(err)
		}
	}
}

// TestMonitoringNamesMetrics checks that the rules and the board name metrics of the
// server only.
func TestMonitoringNamesMetrics(t *testing.T) {
	metrics := &namedMetrics{Registry: prometheus.NewRegistry(), names: map[string]bool{}}
	serveWith(t, func(o *app.Options) { o.Metrics = metrics }, func(cfg *app.Config) {
		cfg.Backup.Every, cfg.Backup.To = time.Hour, t.TempDir()
	})
	registerClickhouse(t, metrics)
	used := regexp.MustCompile(`\b(guidon|process|go)_[a-z0-9_]+`)
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range []string{"alerts.yaml", "dashboard.json"} {
		text := read(t, filepath.Join("../packaging/monitoring", name))
		found := used.FindAllString(text, -1)
		if len(found) < 15 {
			t.Errorf("%s names %d metrics", name, len(found))
		}
		for _, metric := range found {
			if !metrics.names[metric] && !metrics.names[histogram.ReplaceAllString(metric, "")] {
				t.Errorf("%s names %s, which the server does not have", name, metric)
			}
		}
	}
}

// documented returns the metrics of the tables in docs/metrics.md.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)[`{]").FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		if names[row[1]] {
			t.Errorf("docs/metrics.md has %s twice", row[1])
		}
		names[row[1]] = true
	}
	return names
}

// TestMetricsPage checks that docs/metrics.md has each metric of the server and
// no other, and that promlint has nothing against them.
func TestMetricsPage(t *testing.T) {
	metrics := &namedMetrics{Registry: prometheus.NewRegistry(), names: map[string]bool{}}
	s := serveWith(t, func(o *app.Options) { o.Metrics = metrics }, func(cfg *app.Config) {
		cfg.Backup.Every, cfg.Backup.To = time.Hour, t.TempDir()
		cfg.Flags.EvaluationSeries = 10
		cfg.Traces.URL, cfg.Traces.Sample = "http://127.0.0.1:9/v1/traces", 0
		cfg.GeoIP.Database = filepath.Join(t.TempDir(), "none.mmdb")
	})
	node, err := cluster.New(cluster.DefaultConfig(), cluster.Info{}, dbtest.Postgres(t), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Register(metrics); err != nil {
		t.Fatal(err)
	}
	registerClickhouse(t, metrics)
	logCfg := kafka.DefaultConfig()
	logCfg.URL = startBrokers(t)
	l, err := kafka.Open(t.Context(), logCfg, kafka.Options{Cursors: cursors.New(dbtest.SQLite(t)), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	inDocs := documented(t)
	for name := range metrics.names {
		if strings.HasPrefix(name, "guidon_") && !inDocs[name] {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
	for name := range inDocs {
		if !metrics.names[name] {
			t.Errorf("docs/metrics.md has %s, which the server does not have", name)
		}
	}
	s.ProjectKey, s.PersonalKey = s.First.ProjectKey, s.First.PersonalKey
	s.capture(t, `{"event":"seen","distinct_id":"ada"}`)
	s.until(t, "the figures of the stored data are read", func() bool {
		_, text, _ := s.request(t, "GET", s.AdminURL+"/metrics", "")
		return strings.Contains(text, "\nguidon_persons ")
	})
	_, text, _ := s.request(t, "GET", s.AdminURL+"/metrics", "")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "guidon_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
	for _, want := range []string{
		`guidon_build_info{`, `guidon_data_disk_free_bytes `, `guidon_database_connections{pool="write",state="idle"}`, `guidon_database_wal_bytes `,
		`guidon_database_query_seconds_count{kind="commit",pool="write"}`, `guidon_http_request_bytes_total{method="POST",route="/batch"}`,
		`guidon_persons_cache_bytes `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// registerClickhouse registers the metrics of an event store in ClickHouse.
func registerClickhouse(t *testing.T, reg prometheus.Registerer) {
	t.Helper()
	cfg, d := events.DefaultConfig(), dbtest.Postgres(t)
	cfg.URL = "clickhouse://127.0.0.1:9/guidon"
	store, err := clickhouse.New(cfg, d, events.NewShared(d), zap.NewNop())
	if err == nil {
		err = store.Register(reg)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackagedConfigs checks that the configs of the packages are accepted, and that
// their addresses are those that the packages publish.
func TestPackagedConfigs(t *testing.T) {
	for _, test := range []struct{ file, dataDir, address, admin string }{
		{"debian/guidon.yaml", "/var/lib/guidon", "127.0.0.1:8000", "127.0.0.1:8001"},
		{"kubernetes/guidon.yaml", "/data", "0.0.0.0:8000", "0.0.0.0:8001"},
	} {
		cfg, err := app.Load(filepath.Join("../packaging", test.file), nil)
		if err != nil {
			t.Errorf("%s: %v", test.file, err)
			continue
		}
		if cfg.DataDir != test.dataDir || cfg.HTTP.Address != test.address || cfg.HTTP.AdminAddress != test.admin {
			t.Errorf("%s: data_dir %s, address %s, admin_address %s", test.file, cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress)
		}
	}
	var environ []string
	for line := range strings.Lines(read(t, "../packaging/container/Dockerfile")) {
		if variables, ok := strings.CutPrefix(line, "ENV "); ok {
			environ = append(environ, strings.Fields(variables)...)
		}
	}
	cfg, err := app.Load("", environ)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.DataDir != "/data" || cfg.HTTP.Address != "0.0.0.0:8000" || cfg.HTTP.AdminAddress != "0.0.0.0:8001" {
		t.Errorf("Dockerfile: data_dir %s, address %s, admin_address %s", cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress)
	}
}

// probed is the part of a StatefulSet that names ports and paths.
type probed struct {
	Spec struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []map[string]any
			}
		}
	}
}

// TestKubernetesProbes checks that the probes name public paths of the server and
// that the grace period is longer than a stop.
func TestKubernetesProbes(t *testing.T) {
	var set probed
	if err := yaml.Unmarshal([]byte(read(t, "../packaging/kubernetes/statefulset.yaml")), &set); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.Load("../packaging/kubernetes/guidon.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	// A stop delays, then waits at most 10 s for requests and 10 s for plugins.
	if grace := set.Spec.Template.Spec.TerminationGracePeriodSeconds; float64(grace) < cfg.HTTP.StopDelay.Seconds()+30 {
		t.Errorf("the grace period is %d s", grace)
	}
	s := serve(t)
	var paths []string
	for _, r := range s.Routes {
		paths = append(paths, r.Path)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		get := set.Spec.Template.Spec.Containers[0][probe].(map[string]any)["httpGet"].(map[string]any)
		if path := get["path"].(string); !slices.Contains(paths, path) {
			t.Errorf("%s asks for %s, which the server does not have", probe, path)
		}
	}
}

// read returns the text of the file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReleasePackage checks that the Debian package of a release is that of make deb.
func TestReleasePackage(t *testing.T) {
	t.Parallel()
	type content struct {
		Src, Dst, Type string
		FileInfo       struct{ Mode int } `yaml:"file_info"`
	}
	type pack struct {
		Maintainer, Description, Section, Priority, License, Homepage string
		Depends, Dependencies, Recommends                             []string
		Contents                                                      []content
		Scripts                                                       map[string]string
	}
	var own pack
	var release struct{ NFPMs []pack }
	for name, into := range map[string]any{"../packaging/debian/nfpm.yaml": &own, "../.goreleaser.yaml": &release} {
		if err := yaml.Unmarshal([]byte(read(t, name)), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	// goreleaser adds the executable and has another name for the dependencies.
	own.Contents = slices.DeleteFunc(own.Contents, func(c content) bool { return c.Dst == "/usr/bin/guidon" })
	own.Depends, own.Dependencies = nil, own.Depends
	if len(release.NFPMs) != 1 || !reflect.DeepEqual(own, release.NFPMs[0]) {
		t.Errorf("make deb: %+v\nrelease: %+v", own, release.NFPMs)
	}
	for _, c := range own.Contents {
		if strings.HasPrefix(c.Src, ".cache/package/") {
			continue // written by packaging/generate
		}
		if _, err := os.Stat(filepath.Join("..", c.Src)); err != nil {
			t.Error(err)
		}
	}
}
