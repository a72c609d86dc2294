package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

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
	got.Secrets = nil
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
		{"a duration without a unit", "http:\n  read_timeout: 5\n", nil, nil, "http.read_timeout: 5 is a duration without a unit: write one such as 5s"},
		{"a duration without a unit in the environment", "", []string{"GUIDON_HTTP_READ_TIMEOUT=5"}, nil, `GUIDON_HTTP_READ_TIMEOUT: "5" is a duration without a unit`},
		{"a fraction", "definitions:\n  max_event_definitions: 1.5\n", nil, nil, "definitions.max_event_definitions: 1.5 is not a whole number"},
		{"a number that is too large", "journal:\n  max_bytes: 1e30\n", nil, nil, "journal.max_bytes: 1e+30 is too large"},
		{"sizes with units", "journal:\n  max_bytes: 2GiB\n", []string{"GUIDON_HTTP_BODY_BYTES=20MB"},
			func(c app.Config) bool { return c.Journal.MaxBytes == 2<<30 && c.HTTP.BodyBytes == 20e6 }, ""},
		{"0 turns off without a unit", "journal:\n  max_age: 0\n", nil, func(c app.Config) bool { return c.Journal.MaxAge == 0 }, ""},
		{"a reference in the file", "database:\n  url: ${env:DSN}\n", []string{"DSN=postgres://u:hunter22@h/d"},
			func(c app.Config) bool { return c.Database.URL == "postgres://u:hunter22@h/d" }, ""},
		{"a reference in the environment", "", []string{"GUIDON_DATABASE_URL=${env:DSN}", "DSN=sqlite:x.db"},
			func(c app.Config) bool { return c.Database.URL == "sqlite:x.db" }, ""},
		{"a reference in the config of a plugin is kept", "plugins:\n  instances:\n    - name: a\n      kind: sink\n      use: file\n      config: {key: \"${env:DSN}\"}\n", []string{"DSN=x"},
			func(c app.Config) bool { return c.Plugins.Instances[0].Config["key"] == "${env:DSN}" }, ""},
		{"a reference that does not resolve", "database:\n  url: ${env:DSN}\n", nil, nil, "database.url: ${env:DSN}: the variable is not set"},
		{"an address without a port", "http:\n  address: localhost\n", nil, nil, `http.address: "localhost" is not an address`},
		{"an address with an impossible port", "http:\n  address: :99999\n", nil, nil, `http.address: ":99999" has no usable port`},
		{"an address with an impossible host", "http:\n  address: unix:/run/x:80\n", nil, nil, "http.address"},
		{"an address of version 6", "http:\n  address: \"[::1]:8000\"\n", nil, func(c app.Config) bool { return c.HTTP.Address == "[::1]:8000" }, ""},
		{"an invalid value names its section once", "flags:\n  list_values: 0\n", nil, nil, ": flags.list_values must be at least 1"},
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

func TestLoadReportsEveryError(t *testing.T) {
	t.Parallel()
	path := file(t, "http:\n  read_timeout: 5\n  adress: x\njournal:\n  max_bytes: lots\n")
	_, err := app.Load(path, []string{"GUIDON_LOG_LEVEL=${env:MISSING}"})
	if err == nil || strings.Contains(err.Error(), "decoding failed") {
		t.Fatal(err)
	}
	for _, want := range []string{path + ": 4 errors", `"http.adress"`, "http.read_timeout:", "journal.max_bytes:", "GUIDON_LOG_LEVEL:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	_, err = app.Load(file(t, "journal:\n  max_age: -1h\n  max_bytes: lots\nhttp:\n  read_timeout: 5\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "3 errors") || !strings.Contains(err.Error(), "journal.max_age must not be negative") {
		t.Errorf("got %v, want the invalid value beside those of a wrong type", err)
	}
	_, err = app.Load(file(t, "flags:\n  list_values: 0\nauth:\n  max_remembered: 0\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "flags.list_values") || !strings.Contains(err.Error(), "auth.max_remembered") {
		t.Errorf("got %v, want both invalid values", err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const url = "postgres://guidon:hunter22@db/guidon"
	environ := []string{"DSN=" + url, "LEVEL=hunter22"}
	cfg, err := app.Load(file(t, "database:\n  url: ${env:DSN}\n"), environ)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := app.NewLogTo(cfg.Log, cfg.Secrets, &out)
	log.Error("cannot connect to "+url, zap.String("password", "hunter22"), zap.String("user", "guidon"))
	_ = log.Sync()
	if got := out.String(); strings.Contains(got, "hunter22") || !strings.Contains(got, "[secret]") || !strings.Contains(got, "guidon") {
		t.Errorf("the log has %s", got)
	}
	if got := cfg.Redact("dial " + url); got != "dial [secret]" {
		t.Errorf("redacted to %q", got)
	}
	if _, err := app.Load(file(t, "log:\n  level: ${env:LEVEL}\n"), environ); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("the error is %v", err)
	}
}

// synced counts the calls of Sync, which is fsync for a file.
type synced struct {
	bytes.Buffer
	syncs atomic.Int64
}

func (s *synced) Sync() error { s.syncs.Add(1); return nil }

func TestTheLogNeverSyncsItsFile(t *testing.T) {
	t.Parallel()
	cfg, err := app.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var out synced
	log := app.NewLogTo(cfg.Log, cfg.Secrets, &out)
	log.Warn("a line")
	_ = log.Sync()
	if n := out.syncs.Load(); n > 0 || !strings.Contains(out.String(), "a line") {
		t.Errorf("%d syncs, log %s", n, out.String())
	}
}

// TestServiceLinksAreIgnored has the variables that Kubernetes and docker set for
// a service called guidon, and similar names that are misspelt settings.
func TestServiceLinksAreIgnored(t *testing.T) {
	t.Parallel()
	for pair, ignored := range map[string]bool{
		"GUIDON_SERVICE_HOST=10.96.0.12":                true,
		"GUIDON_SERVICE_PORT=8000":                      true,
		"GUIDON_SERVICE_PORT_HTTP=8000":                 true,
		"GUIDON_PORT=tcp://10.96.0.12:8000":             true,
		"GUIDON_PORT=tcp://[fd00::12]:8000":             true,
		"GUIDON_PORT_8000_TCP=tcp://10.96.0.12:8000":    true,
		"GUIDON_PORT_8000_TCP_PROTO=tcp":                true,
		"GUIDON_PORT_8000_TCP_PORT=8000":                true,
		"GUIDON_PORT_8000_TCP_ADDR=10.96.0.12":          true,
		"GUIDON_PORT_53_UDP_ADDR=10.96.0.12":            true,
		"GUIDON_HTTP_SERVICE_HOST=10.96.0.12":           true,
		"GUIDON_HTTP_PORT=tcp://10.96.0.12:8000":        true,
		"GUIDON_HTTP_PORT_8000_TCP_ADDR=10.96.0.12":     true,
		"GUIDON_PORT_8000_TCP_START=tcp://1.2.3.4:8000": true,
		"GUIDON_PORT_8000_TCP_PORT_END=8010":            true,
		"GUIDON_NAME=/web/guidon":                       true,
		"GUIDON_ENV_PATH=/usr/bin":                      true,
		"GUIDON_1_PORT=tcp://172.17.0.2:8000":           true,

		"GUIDON_PORT=8000":               false,
		"GUIDON_HTTP_PORT=8000":          false,
		"GUIDON_NAME=guidon":             false,
		"GUIDON_SERVICE_ADDRESS=:8000":   false,
		"GUIDON_HTTP_ADRESS=:8000":       false,
		"GUIDON_PORT_TCP=tcp://1.2.3.4:": false,
		"GUIDON_ADDRESS=tcp://1.2.3.4:8": false,
	} {
		_, err := app.Load("", []string{pair})
		switch name, _, _ := strings.Cut(pair, "="); {
		case ignored && err != nil:
			t.Errorf("%s: %v", pair, err)
		case !ignored && (err == nil || !strings.Contains(err.Error(), name+" is not a setting; did you mean GUIDON_")):
			t.Errorf("%s: got %v, want an error with the nearest setting", pair, err)
		}
	}
	if cfg, err := app.Load("", []string{"GUIDON_HTTP_ADDRESS=:9001", "GUIDON_PORT=tcp://10.96.0.12:8000"}); err != nil || cfg.HTTP.Address != ":9001" {
		t.Errorf("a setting beside a service link: %q, %v", cfg.HTTP.Address, err)
	}
}

// TestSettings checks where each setting comes from, and that no password is shown.
// A password is masked with all of its characters; a reference to a secret stays.
func TestSettingsMaskWholePasswords(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:hunter$2@h/d":            "postgres://u:***@h/d",
		"postgres://u:hun@ter2@h/d":            "postgres://u:***@h/d",
		"postgres://u:hunter${env:PW}2@h/d":    "postgres://u:***@h/d",
		"postgres://u:${env:PW}@h/d":           "postgres://u:${env:PW}@h/d",
		"postgres://h/d?password=hunter$2&a=b": "postgres://h/d?password=***&a=b",
		"postgres://h/d?password=${env:PW}":    "postgres://h/d?password=${env:PW}",
	} {
		settings, err := app.Settings(file(t, fmt.Sprintf("database:\n  url: %q\n", url)), []string{"PW=x"})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		for _, s := range settings {
			if s.Key == "database.url" && s.Value != want {
				t.Errorf("got %s, want %s", s.Value, want)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	path := file(t, "data_dir: elsewhere\nhttp:\n  address: 127.0.0.1:1\ndatabase:\n  url: postgres://u:hunter2@h/d\nflags:\n  encryption_key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\nplugins:\n  instances:\n    - {name: out, kind: sink, use: stdout}\n")
	settings, err := app.Settings(path, []string{"GUIDON_HTTP_ADDRESS=127.0.0.1:2", "GUIDON_HTTP_ADMIN_ADDRESS=127.0.0.1:8001", "HOME=/"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]app.Setting{}
	for _, s := range settings {
		got[s.Key] = s
		if strings.Contains(s.Value, "hunter2") || strings.Contains(s.Value, "MDEyMzQ1Njc4") {
			t.Errorf("%s shows a secret: %s", s.Key, s.Value)
		}
	}
	for key, want := range map[string]app.Setting{
		"data_dir":             {Value: "elsewhere", From: path + ":1", Changed: true},
		"http.address":         {Value: "127.0.0.1:2", From: "GUIDON_HTTP_ADDRESS", Changed: true},
		"http.admin_address":   {Value: "127.0.0.1:8001", From: "GUIDON_HTTP_ADMIN_ADDRESS"},
		"database.url":         {Value: "postgres://u:***@h/d", From: path + ":5", Changed: true},
		"flags.encryption_key": {Value: "***", From: path + ":7", Changed: true},
		"http.stop_delay":      {Value: "0s", From: "default"},
		"plugins.instances":    {Value: "1 configured", From: path + ":9", Changed: true, Live: true},
	} {
		want.Key = key
		if got[key] != want {
			t.Errorf("%+v, want %+v", got[key], want)
		}
	}
	if len(settings) < len(app.Keys()) {
		t.Errorf("%d settings of %d", len(settings), len(app.Keys()))
	}
	if _, err := app.Settings(path, []string{"GUIDON_HTTP_ADDRESS=x"}); err == nil {
		t.Error("a wrong setting is shown")
	}
}

func TestSettingsKeepReferences(t *testing.T) {
	path := file(t, "database:\n  url: postgres://u:${env:PW}@h/d\nflags:\n  encryption_key: ${env:KEY}\n")
	settings, err := app.Settings(path, []string{"PW=hunter2", "KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if s.Changed && !strings.Contains(s.Value, "${env:") {
			t.Errorf("%s is %s", s.Key, s.Value)
		}
	}
}
