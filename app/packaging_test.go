package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/app"
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
