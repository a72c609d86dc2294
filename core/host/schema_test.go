package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// probeSchema is what the probe would say of its config, and a little more.
func probeSchema(name, kind string) []byte {
	if name != "probe" || kind != settings.KindSink {
		return nil
	}
	return sdk.Schema((&probe{}).Config())
}

func TestConfigIsCheckedBeforeStart(t *testing.T) {
	t.Setenv("GUIDON_TEST_NUMBER", "7")
	tests := []struct {
		name   string
		config map[string]any
		says   []string // pointer and summary of each diagnostic; none: it starts
	}{
		{"a key that is not known", map[string]any{"nubmer": 1}, []string{`/nubmer unknown key did you mean "number"?`}},
		{"several things at once", map[string]any{"x": 1, "number": 11, "fork": "yes"},
			[]string{"/fork must be true or false got a string", "/number must be at most 10 ", "/x unknown key "}},
		{"a map with a value of another type", map[string]any{"labels": map[string]any{"a/b": 1}}, []string{"/labels/a~1b must be a string got a number"}},
		{"a reference is the plugin's to check", map[string]any{"number": "${env:GUIDON_TEST_NUMBER}"}, nil},
		{"null is a key that is not there", map[string]any{"number": nil}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			dir := t.TempDir()
			h, err := host.New(config(instance("p", "probe", tt.config)), host.Deps{
				DataDir: dir, Bundled: bundled, Schema: probeSchema, Log: zap.New(core), Metrics: prometheus.NewRegistry(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := &run{Host: h, logs: logs, dir: dir}
			defer func() { _ = h.Stop(context.Background()) }()
			if tt.says == nil {
				r.becomes(t, lifecycle.StateReady)
				return
			}
			st := r.becomes(t, lifecycle.StateMisconfigured)
			var got []string
			for _, d := range st.Diagnostics {
				got = append(got, d.Pointer+" "+d.Summary+" "+d.Detail)
			}
			if strings.Join(got, "; ") != strings.Join(tt.says, "; ") {
				t.Errorf("last error %q", got)
			}
			if logs.FilterField(zap.String("state", "starting")).Len() > 0 {
				t.Error("a process was started")
			}
		})
	}
}

func TestDiagnosticsContainNoValues(t *testing.T) {
	t.Parallel()
	const secret = "written-in-plain-sight"
	r := start(t, config(instance("p", "probe", map[string]any{"number": secret, "labels": secret, "fork": secret, "secret": []any{secret}})))
	st := r.becomes(t, lifecycle.StateMisconfigured)
	if len(st.Diagnostics) != 4 || strings.Contains(fmt.Sprintf("%+v", st), secret) {
		t.Errorf("status %+v", st)
	}
}

// acme is a third party's plugin: a script that starts this test binary as one.
func acme(t *testing.T, name string) (path, digest string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "acme")
	script := "#!/bin/sh\nexec " + self + " plugin exec " + name + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(script))
	return path, hex.EncodeToString(sum[:])
}

func TestThirdPartySchemaIsKept(t *testing.T) {
	t.Parallel()
	path, digest := acme(t, "acme")
	c := instance("p", path, nil)
	c.SHA256 = digest
	r := start(t, config(c))
	r.sink(t)
	if _, err := os.Stat(filepath.Join(r.dir, "plugins", "schema", digest+".sink.json")); err != nil {
		t.Fatal(err)
	}
	c.Config = map[string]any{"wrong": true}
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	st := r.becomes(t, lifecycle.StateDegraded)
	if st.Reason != "upgrade_failed" || st.SHA256 != digest || !strings.Contains(st.LastError, "config/wrong: unknown key") {
		t.Errorf("status %+v", st)
	}
}

// The file may be a launcher of a program whose schema has changed: what is remembered of an
// earlier run must not keep the process from being asked.
func TestRememberedSchemaDoesNotRefuse(t *testing.T) {
	t.Parallel()
	path, digest := acme(t, "acme")
	c := instance("p", path, map[string]any{"number": 1})
	c.SHA256 = digest
	r := start(t, config(c))
	r.sink(t)
	remembered := filepath.Join(r.dir, "plugins", "schema", digest+".sink.json")
	if err := os.WriteFile(remembered, []byte(`{"type":"object","additionalProperties":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Restart("p")
	if st := r.serves(t, 2); st.State != lifecycle.StateReady {
		t.Errorf("status %+v", st)
	}
	if r.logs.FilterMessage("plugin config does not fit the remembered schema; asking the plugin").Len() != 1 {
		t.Error("no warning")
	}
	if now, _ := os.ReadFile(remembered); !strings.Contains(string(now), "number") {
		t.Errorf("the new schema is not remembered: %s", now)
	}
}

func TestReplacedFileGivesAHint(t *testing.T) {
	t.Parallel()
	path, digest := acme(t, "acme")
	c := instance("p", path, nil)
	c.SHA256 = digest
	r := start(t, config(c))
	r.sink(t)
	if st := r.Status()[0]; st.Hint != "" {
		t.Errorf("hint %q", st.Hint)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n# version 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	st := r.Status()[0]
	sum := sha256.Sum256([]byte("#!/bin/sh\n# version 2\n"))
	if st.State != lifecycle.StateReady || !strings.Contains(st.Hint, path) || !strings.Contains(st.Hint, hex.EncodeToString(sum[:])) {
		t.Errorf("status %+v", st)
	}
	kill(t, st.PID, syscall.SIGKILL)
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateReady || st.Restarts != 1 || st.Hint == "" {
			return fmt.Sprintf("%+v", st)
		}
		return ""
	})
}

func TestDevModeRunsUnverifiedExecutables(t *testing.T) {
	t.Parallel()
	path, digest := acme(t, "acme")
	cfg := config(instance("p", path, nil))
	cfg.Dev = true
	r := start(t, cfg)
	r.sink(t)
	st := r.Status()[0]
	if !st.Unverified || st.SHA256 != digest {
		t.Errorf("status %+v", st)
	}
	eventually(t, func() string {
		if r.logs.FilterMessageSnippet("DEVELOPMENT MODE").Len() == 0 {
			return "no banner"
		}
		return ""
	})

	t.Run("a new build is another generation", func(t *testing.T) {
		self, _ := os.Executable()
		if err := os.WriteFile(path, []byte("#!/bin/sh\n# version 2\nexec "+self+" plugin exec acme\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if st := r.serves(t, 2); st.SHA256 == digest {
			t.Errorf("status %+v", st)
		}
	})

	t.Run("an installed version is shown, and a restart runs it", func(t *testing.T) {
		self, _ := os.Executable()
		text := []byte("#!/bin/sh\n# version 3\nexec " + self + " plugin exec acme\n")
		sum := sha256.Sum256(text)
		installed := hex.EncodeToString(sum[:])
		if err := os.WriteFile(path, text, 0o700); err != nil {
			t.Fatal(err)
		}
		r.CheckInstalledFiles()
		if st := r.Status()[0]; st.InstalledSHA256 != installed || st.SHA256 == installed {
			t.Errorf("status %+v", st)
		}
		r.Restart("p")
		if st := r.serves(t, 3); st.SHA256 != installed || st.InstalledSHA256 != "" {
			t.Errorf("status %+v", st)
		}
	})

	t.Run("a checksum that is given must still be right", func(t *testing.T) {
		cfg.Instances[0].SHA256 = strings.Repeat("ab", 32)
		if err := r.Apply(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if st := r.becomes(t, lifecycle.StateDegraded); !strings.Contains(st.LastError, "the checksum of") {
			t.Errorf("status %+v", st)
		}
	})
}
