package main_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asks runs a verb that asks the running server.
func (s *server) asks(key string, args ...string) (string, error) {
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = s.dir, append(s.env(), "GUIDON_PERSONAL_KEY="+key)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPluginVerbsAskTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	until(t, 20*time.Second, func() string {
		said, err := s.asks(s.personal, "plugin", "status")
		if err != nil || !strings.Contains(said, "lines  sink  file  ready") {
			return said
		}
		return ""
	})
	for _, c := range []struct{ verb, says string }{
		{"status lines", `"state": "ready"`},
		{"check lines", "lines works"},
		{"pause lines", "lines paused"},
		{"status", "delivery is paused"},
		{"resume lines", "lines "},
		{"restart lines", "lines "},
		{"release lines", "lines "},
		{"logs lines -n 5", ""},
		{"reload", `"restart_needed": []`},
	} {
		said, err := s.asks(s.personal, append([]string{"plugin"}, strings.Fields(c.verb)...)...)
		if err != nil || !strings.Contains(said, c.says) {
			t.Errorf("plugin %s: %v\n%s", c.verb, err, said)
		}
	}
	for name, c := range map[string]struct{ key, verb, says string }{
		"without a key":            {"", "status", "GUIDON_PERSONAL_KEY"},
		"with a wrong key":         {"phx_wrong", "status", "(invalid_personal_api_key)"},
		"of an instance not there": {s.personal, "logs nobody", "(not_found)"},
		"too many lines":           {s.personal, "logs lines -n 5000", "from 1 to 500"},
		"of a server not there":    {s.personal, "status --server http://127.0.0.1:1", "no server answers"},
		"of something else":        {s.personal, "status --server ftp://x", "not an http or https URL"},
	} {
		said, err := s.asks(c.key, append([]string{"plugin"}, strings.Fields(c.verb)...)...)
		if err == nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		if c.key != "" && strings.Contains(said, c.key) {
			t.Errorf("%s: the key is shown", name)
		}
	}
}
