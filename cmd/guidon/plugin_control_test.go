package main_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// runWithKey runs a command with a personal key in the environment.
func (s *server) runWithKey(key string, args ...string) (string, error) {
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = s.dir, append(s.env(), "GUIDON_PERSONAL_KEY="+key)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPluginCommandsCallServer(t *testing.T) {
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
	for _, c := range []struct{ command, want string }{
		{"status lines", `"state": "ready"`},
		{"check lines", "lines works"},
		{"pause lines --yes", "lines paused"},
		{"status", "delivery is paused: asked by "},
		{"list", "lines     sink  file  ready  delivery is paused: asked by "},
		{"resume lines", "lines "},
		{"restart lines", "lines "},
		{"release lines", "lines "},
		{"logs lines -n 5", ""},
		{"reload", `"restart_needed": []`},
		{"reload --dry-run", "lines  sink  file  unchanged"},
		{"reload --dry-run --json", `"action": "unchanged"`},
	} {
		output, err := s.runWithKey(s.personal, append([]string{"plugin"}, strings.Fields(c.command)...)...)
		if err != nil || !strings.Contains(output, c.want) {
			t.Errorf("plugin %s: %v\n%s", c.command, err, output)
		}
	}
	for _, c := range []struct{ key, command, want string }{
		{"", "list", "webhook"},
		{s.personal, "list --server http://127.0.0.1:1", "instances not listed: no server answers"},
	} {
		output, err := s.runWithKey(c.key, append([]string{"plugin"}, strings.Fields(c.command)...)...)
		if err != nil || !strings.Contains(output, c.want) || strings.Contains(output, "INSTANCE") {
			t.Errorf("plugin %s: %v\n%s", c.command, err, output)
		}
	}
	for name, c := range map[string]struct {
		key, command, want string
		code               int
	}{
		"without a key":          {"", "status", "GUIDON_PERSONAL_KEY", 1},
		"with a wrong key":       {"phx_wrong", "status", "(invalid_personal_api_key)", 4},
		"of an unknown instance": {s.personal, "logs unknown", "(not_found)", 3},
		"too many lines":         {s.personal, "logs lines -n 5000", "from 1 to 500", 1},
		"of an absent server":    {s.personal, "status --server http://127.0.0.1:1", "no server answers", 5},
		"with a wrong scheme":    {s.personal, "status --server ftp://x", "not an http or https URL", 1},
	} {
		output, err := s.runWithKey(c.key, append([]string{"plugin"}, strings.Fields(c.command)...)...)
		if err == nil || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != c.code {
			t.Errorf("%s: %v, want exit code %d", name, err, c.code)
		}
		if c.key != "" && strings.Contains(output, c.key) {
			t.Errorf("%s: the output shows the key", name)
		}
	}
}
