package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test follows the guide from top to bottom on a running server: it applies
// each config without a restart and runs each command.
func TestOperatingGuideRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	text, err := os.ReadFile("../../docs/plugins/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	configs, commands := 0, 0
	for i, part := range strings.Split(string(text), "```") {
		language, body, _ := strings.Cut(part, "\n")
		switch {
		case i%2 == 0:
		case language == "yaml":
			configs++
			s.applyConfig(t, body)
		case language == "sh":
			for command := range strings.Lines(body) {
				commands++
				if out, err := s.runCommand(command); err != nil {
					t.Errorf("%s%v\n%s", command, err, out)
				}
			}
		}
	}
	if configs < 4 || commands < 5 {
		t.Errorf("found only %d configs and %d commands", configs, commands)
	}
}

// applyConfig writes a config of instances, reloads it and waits until the server
// has applied it.
func (s *server) applyConfig(t *testing.T, body string) {
	t.Helper()
	if !strings.HasPrefix(body, "plugins:") {
		body = "plugins:\n  instances:\n" + body
	}
	write(t, s.config(), strings.NewReplacer("./data/archive.ndjson", s.lines, "env:HASH_KEY", "env:PATH").Replace(body))
	if out, err := s.runCommand("guidon plugin reload"); err != nil {
		t.Fatalf("%s\n%v\n%s", body, err, out)
	}
	name, state := "archive", "ready"
	if strings.Contains(body, "name: warehouse") {
		name, state = "warehouse", "untrusted" // the reader fills in the checksum
	}
	until(t, func() string {
		var page struct {
			Results []struct {
				Name, State string
				LastError   string `json:"last_error"`
				Delivery    struct{ State string }
			}
		}
		s.get(t, "/api/plugins/", &page)
		if len(page.Results) == 1 && page.Results[0].Name == name && page.Results[0].State == state && page.Results[0].Delivery.State != "misconfigured" {
			return ""
		}
		out, _ := s.runCommand("guidon plugin status")
		return body + out
	})
}

// runCommand runs a shell command in the directory of the server, with guidon in
// PATH and a personal key in the environment.
func (s *server) runCommand(command string) (string, error) {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = s.dir
	cmd.Env = append(s.env(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "GUIDON_PERSONAL_KEY="+s.personal)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
