package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
)

// file writes a config file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guidon.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultYAMLIsTheDefaultConfig(t *testing.T) {
	t.Parallel()
	got, err := app.Load(file(t, app.DefaultYAML), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", app.DefaultConfig()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDefaultYAMLNamesEverySetting(t *testing.T) {
	t.Parallel()
	for _, key := range app.Keys() {
		last := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(app.DefaultYAML, last+":") {
			t.Errorf("default.yaml does not mention %s", key)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		yaml    string
		environ []string
		check   func(app.Config) bool
		fault   string
	}{
		{"settings that are not in the file keep their defaults", "http:\n  address: :9000\n", nil,
			func(c app.Config) bool {
				return c.HTTP.Address == ":9000" && c.HTTP.ReadTimeout == app.DefaultConfig().HTTP.ReadTimeout
			}, ""},
		{"the environment wins over the file", "http:\n  address: :9000\n", []string{"GUIDON_HTTP_ADDRESS=:9001", "GUIDON_DATA_DIR=/x"},
			func(c app.Config) bool { return c.HTTP.Address == ":9001" && c.DataDir == "/x" }, ""},
		{"a list in the environment is split at commas", "", []string{"GUIDON_HTTP_TRUSTED_PROXIES=loopback,10.0.0.0/8"},
			func(c app.Config) bool { return len(c.HTTP.TrustedProxies) == 2 }, ""},
		{"a list replaces the default list", "http:\n  trusted_proxies: [loopback]\n", nil,
			func(c app.Config) bool { return len(c.HTTP.TrustedProxies) == 1 }, ""},
		{"a plugin keeps the case and the types of its config", "plugins:\n  instances:\n    - name: a\n      kind: sink\n      use: file\n      config: {Path: x, n: 3}\n", nil,
			func(c app.Config) bool {
				return c.Plugins.Instances[0].Config["Path"] == "x" && c.Plugins.Instances[0].Config["n"] == 3
			}, ""},
		{"an unknown key names the nearest", "http:\n  adress: x\n", nil, nil, `unknown key "http.adress"; did you mean "http.address"`},
		{"an unknown key in a list", "plugins:\n  instances:\n    - name: a\n      kidn: sink\n", nil, nil, `unknown key "plugins.instances[0].kidn"; did you mean "plugins.instances[0].kind"`},
		{"an unknown name in the environment", "", []string{"GUIDON_HTTP_ADRESS=x"}, nil, "did you mean GUIDON_HTTP_ADDRESS"},
		{"a wrong duration", "http:\n  read_timeout: soon\n", nil, nil, "http.read_timeout"},
		{"an invalid value names the setting", "http:\n  json_depth: 0\n", nil, nil, "json_depth"},
		{"a value where settings belong", "http: 8080\n", []string{"GUIDON_HTTP_ADDRESS=:9001"}, nil, `"http" holds settings such as "http.access_log"`},
		{"a list where settings belong", "http: [1, 2]\n", []string{"GUIDON_HTTP_ADDRESS=:9001"}, nil, `"http" holds settings`},
		{"instances that are no list", "plugins:\n  instances:\n    name: a\n    kidn: sink\n", nil, nil, `"plugins.instances" must be a list`},
		{"an empty section", "http:\nplugins:\n  instances:\n", nil, func(c app.Config) bool { return c.HTTP.Address == app.DefaultConfig().HTTP.Address }, ""},
		{"a wrong value in the environment names it", "", []string{"GUIDON_JOURNAL_MAX_BYTES=lots"}, nil, "GUIDON_JOURNAL_MAX_BYTES"},
		{"not YAML", "http: [", nil, nil, "read config"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := app.Load(file(t, c.yaml), c.environ)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("error %v, want one with %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
