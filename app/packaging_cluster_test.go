package app_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/app"
)

// manifests returns the documents of all YAML files of a directory, by kind.
func manifests(t *testing.T, dir string) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	out := map[string]map[string]any{}
	for _, file := range files {
		for d := yaml.NewDecoder(strings.NewReader(read(t, file))); ; {
			var document map[string]any
			err := d.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			kind, _ := document["kind"].(string)
			if filepath.Base(file) != "guidon.yaml" && (kind == "" || document["apiVersion"] == "" || out[kind] != nil) {
				t.Errorf("%s: a document of kind %q", file, kind)
			}
			out[kind] = document
		}
	}
	return out
}

// strict decodes a document, of which every field must be in v.
func strict(t *testing.T, document, v any) {
	t.Helper()
	text, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// checkNode checks that a config is one of a node of a cluster.
func checkNode(t *testing.T, cfg app.Config, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if !cfg.Cluster.Enabled || !cfg.Journal.Shared() || !strings.HasPrefix(cfg.Database.URL, "postgres://") || cfg.Flags.EncryptionKey == "" ||
		cfg.DataDir != "/data" || cfg.HTTP.Address != "0.0.0.0:8000" || cfg.HTTP.StopDelay == 0 {
		t.Errorf("not a node of a cluster: %+v", cfg)
	}
}

// minGrace is how long a node may take to stop after its delay: requests, partitions,
// plugins, and ten seconds more.
const minGrace = 40

// TestKubernetesCluster checks that the manifests of a cluster are complete and fit
// together, and that their settings exist.
func TestKubernetesCluster(t *testing.T) {
	t.Parallel()
	const dir = "../packaging/kubernetes-cluster"
	all := manifests(t, dir)
	var secret struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   map[string]string
		StringData map[string]string `yaml:"stringData"`
	}
	strict(t, all["Secret"], &secret)
	var list struct{ Resources []string }
	if text, err := yaml.Marshal(all["Kustomization"]); err != nil || yaml.Unmarshal(text, &list) != nil {
		t.Fatal(err)
	}
	if slices.Sort(list.Resources); !slices.Equal(list.Resources, []string{"deployment.yaml", "disruption.yaml", "secret.yaml", "service.yaml"}) {
		t.Errorf("the kustomization has %v", list.Resources)
	}
	type container struct {
		Args    []string
		EnvFrom []struct {
			SecretRef struct{ Name string } `yaml:"secretRef"`
		} `yaml:"envFrom"`
		Env             []struct{ Name string }
		Ports           []struct{ Name string }
		SecurityContext struct {
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
		Resources    struct{ Requests, Limits map[string]string }
		VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
		StartupProbe struct {
			HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		} `yaml:"startupProbe"`
		LivenessProbe struct {
			HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		} `yaml:"livenessProbe"`
		ReadinessProbe struct {
			HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		} `yaml:"readinessProbe"`
	}
	var deployment struct {
		Spec struct {
			Replicas int
			Template struct {
				Spec struct {
					Grace           int `yaml:"terminationGracePeriodSeconds"`
					SecurityContext struct {
						RunAsNonRoot bool `yaml:"runAsNonRoot"`
					} `yaml:"securityContext"`
					Containers []container
					Volumes    []struct{ Name string }
				}
			}
		}
	}
	if text, err := yaml.Marshal(all["Deployment"]); err != nil || yaml.Unmarshal(text, &deployment) != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	c := pod.Containers[0]
	var environ []string
	for name, value := range secret.StringData {
		environ = append(environ, name+"="+value)
	}
	for _, v := range c.Env {
		environ = append(environ, v.Name+"=guidon-1")
	}
	cfg, err := app.Load(filepath.Join(dir, "guidon.yaml"), environ)
	checkNode(t, cfg, err)
	if cfg.Events.URL == "" || cfg.Cluster.Name != "guidon-1" || cfg.Journal.Password == "" {
		t.Errorf("settings of the Secret are missing: %v", slices.Sorted(maps.Keys(secret.StringData)))
	}
	if _, err := app.Load(filepath.Join(dir, "guidon.yaml"), append(environ, "GUIDON_JOURNAL_URI=x")); err == nil {
		t.Error("a setting that does not exist is accepted")
	}
	if deployment.Spec.Replicas < 3 || float64(pod.Grace) < cfg.HTTP.StopDelay.Seconds()+minGrace {
		t.Errorf("%d replicas, a grace period of %d s", deployment.Spec.Replicas, pod.Grace)
	}
	if !pod.SecurityContext.RunAsNonRoot || !c.SecurityContext.ReadOnlyRootFilesystem || c.SecurityContext.AllowPrivilegeEscalation || c.Resources.Limits["memory"] == "" {
		t.Errorf("%+v", c)
	}
	if c.EnvFrom[0].SecretRef.Name != secret.Metadata["name"] || c.LivenessProbe.HTTPGet.Path != "/_liveness" || c.ReadinessProbe.HTTPGet.Path != "/_readiness" ||
		c.StartupProbe.HTTPGet.Path != "/_liveness" || c.ReadinessProbe.HTTPGet.Port != c.Ports[0].Name {
		t.Errorf("%+v", c)
	}
	for _, mount := range c.VolumeMounts {
		if !slices.Contains(pod.Volumes, struct{ Name string }{mount.Name}) {
			t.Errorf("there is no volume %s", mount.Name)
		}
	}
	if all["PodDisruptionBudget"] == nil || all["Service"] == nil || all["StatefulSet"] != nil {
		t.Errorf("the kinds are %v", slices.Sorted(maps.Keys(all)))
	}
}

// TestComposeCluster checks that the services of the compose file fit together, and that
// their settings exist.
func TestComposeCluster(t *testing.T) {
	t.Parallel()
	const dir = "../packaging/container/cluster"
	type service struct {
		Environment map[string]string
		Volumes     []string
		DependsOn   any    `yaml:"depends_on"`
		Grace       string `yaml:"stop_grace_period"`
		ReadOnly    bool   `yaml:"read_only"`
	}
	var compose struct {
		Services map[string]service
		Volumes  map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(t, dir+"/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	balancer := read(t, dir+"/haproxy.cfg")
	nodes, brokers := 0, 0
	for name, s := range compose.Services {
		for _, v := range s.Volumes {
			if source, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(source, "./") {
				if _, ok := compose.Volumes[source]; !ok {
					t.Errorf("%s: there is no volume %s", name, source)
				}
			} else if read(t, filepath.Join(dir, source)) == "" {
				t.Errorf("%s: %s is empty", name, source)
			}
		}
		switch depends := s.DependsOn.(type) {
		case []any:
			for _, on := range depends {
				if _, ok := compose.Services[on.(string)]; !ok {
					t.Errorf("%s depends on %s", name, on)
				}
			}
		case map[string]any:
			for on := range depends {
				if _, ok := compose.Services[on]; !ok {
					t.Errorf("%s depends on %s", name, on)
				}
			}
		}
		switch {
		case strings.HasPrefix(name, "guidon"):
			nodes++
			checkComposeNode(t, dir, s.Environment)
			if s.Grace != "60s" || !s.ReadOnly || !strings.Contains(balancer, "server "+name+" "+name+":8000\n") {
				t.Errorf("%s: %+v", name, s)
			}
		case strings.HasPrefix(name, "kafka"):
			brokers++
			if e := s.Environment; e["KAFKA_MIN_INSYNC_REPLICAS"] != "2" || e["KAFKA_ADVERTISED_LISTENERS"] != "PLAINTEXT://"+name+":9092" {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	if nodes != 3 || brokers != 3 || strings.Count(balancer, "  server ") != nodes || !strings.Contains(balancer, "GET /_readiness") {
		t.Errorf("%d nodes, %d brokers", nodes, brokers)
	}
}

var composeVariable = regexp.MustCompile(`\$\{(\w+):[?-]\}`)

// checkComposeNode loads the config of a node with its environment.
func checkComposeNode(t *testing.T, dir string, environment map[string]string) {
	t.Helper()
	values := map[string]string{"POSTGRES_PASSWORD": "secret", "PAYLOAD_KEY": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "GUIDON_EVENTS_URL": "clickhouse://guidon:x@clickhouse:8123/guidon"}
	var environ []string
	for name, value := range environment {
		of := composeVariable.FindStringSubmatch(value)
		if of == nil || values[of[1]] == "" {
			t.Fatalf("%s is %s", name, value)
		}
		environ = append(environ, name+"="+values[of[1]])
	}
	cfg, err := app.Load(dir+"/guidon.yaml", environ)
	checkNode(t, cfg, err)
	if cfg.Events.URL == "" {
		t.Error("events.url is not passed on")
	}
}
