package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Commands on the plugins of a running server work while the config file is broken, and
// say where it is. Commands that need no config do not read it.
func TestPluginCommandsWithABrokenConfig(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	until(t, func() string {
		output, err := s.runWithKey(s.personal, "plugin", "status")
		if err != nil || !strings.Contains(output, "lines  sink  file  ready") {
			return output
		}
		return ""
	})
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":         {"plugins:\n  instances:\n    - {name: lines,\nlog:\n  level: info\n", "line 3: did not find expected ',' or '}'"},
		"an unknown key":   {"data_dir: x\nplugins:\n  instnaces: []\n", `line 3: unknown key "plugins.instnaces"; did you mean "plugins.instances"?`},
		"a wrong value":    {"log:\n  # how much\n  level: loud\n", "line 3: log.level"},
		"a wrong instance": {"plugins:\n  instances:\n    - name: a\n      kind: sink\n      use: file\n      delivery:\n        sample: 3\n", "line 7: plugins.instances[0] (a): delivery.sample"},
	} {
		if err := os.WriteFile(s.config(), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"status lines", "status", "check lines", "logs lines", "pause lines --yes", "resume lines", "release lines", "restart lines"} {
			output, err := s.runWithKey(s.personal, append([]string{"plugin"}, strings.Fields(command)...)...)
			if err != nil || !strings.Contains(output, "guidon: warning: ") || !strings.Contains(output, c.want) || !strings.Contains(output, s.admin) {
				t.Errorf("%s: plugin %s: %v\n%s", name, command, err, output)
			}
		}
		if output, err := s.runWithKey(s.personal, "plugin", "reload"); err == nil || !strings.Contains(output, c.want) || !strings.Contains(output, "(invalid_config)") {
			t.Errorf("%s: plugin reload: %v\n%s", name, err, output)
		}
		for _, command := range []string{"plugin list", "plugin new --help", "plugin run --help", "version", "config"} {
			output, err := s.guidon(strings.Fields(command)...)
			if err != nil || strings.Contains(output, "guidon: warning") {
				t.Errorf("%s: %s: %v\n%s", name, command, err, output)
			}
		}
		if output, err := s.guidon("project", "list"); err == nil || !strings.Contains(output, c.want) {
			t.Errorf("%s: project list: %v\n%s", name, err, output)
		}
	}
}

// The address of the server is read from the http section alone. If that is wrong, too,
// the error names its line and the option that replaces it.
func TestAdminAddressOfABrokenConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(text string) string {
		t.Helper()
		path := filepath.Join(dir, "guidon.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := runIn(dir, "GUIDON_PERSONAL_KEY=phx_x", "plugin", "status")
		if err == nil {
			t.Errorf("no error: %s", output)
		}
		return output
	}
	if output := run("plugins: [\nhttp:\n  admin_address: 127.0.0.1:1\n"); !strings.Contains(output, "goes on with http.admin_address 127.0.0.1:1") || !strings.Contains(output, "no server answers") {
		t.Error(output)
	}
	if output := run("plugins: [\nhttp:\n  admin_address: [\n"); !strings.Contains(output, "line 3") || !strings.Contains(output, "--server") {
		t.Error(output)
	}
}

// runIn runs a command in a directory with one variable more in its environment.
func runIn(dir, variable string, args ...string) (string, error) {
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), variable)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
