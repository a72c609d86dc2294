package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/sdk/plugintest"
)

func TestPluginTestReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.json"), `{"path": "events.ndjson"}`)
	run := func(args string) (string, error) {
		cmd := exec.Command(bin, append([]string{"plugin"}, strings.Fields(args)...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// The file sink has no secret, stages nothing, takes one batch at a time and accepts
	// any event: four cases are skipped.
	cmd := exec.Command(bin, "plugin", "test", "file", "--config", "config.json", "--observe", "cat events.ndjson", "--json", "report.json")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " 0 failed, 4 skipped") {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report plugintest.Report
	if err := json.Unmarshal(text, &report); err != nil || report.Plugin != "file" || report.Kind != "sink" || len(report.Cases) != report.Passed+report.Skipped {
		t.Errorf("%v: %s", err, text)
	}
	for args, want := range map[string]string{
		"test webhook":           "say which kind",
		"test ./no-such-file":    "neither a bundled plugin nor a file",
		"test":                   "with --remote the address",
		"test file --remote a:1": "exclude each other",
		"test --remote a:1":      "needs ca, cert and key",
		"test --remote a --ca c --cert c --key k":    "is host:port",
		"test file --restart true":                   "a restart is for a remote plugin",
		"test /bin/true":                             "it ended before the handshake",
		"run file --config report.json":              "refuses the config",
		"run webhook --kind sink --config /bin/true": "not a JSON object",
	} {
		if out, err := run(args); err == nil || !strings.Contains(out, want) {
			t.Errorf("plugin %s: %v\n%s", args, err, out)
		}
	}
}

func TestPluginRunSendsStdinToSink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.json"), `{"path": "events.ndjson"}`)
	cmd := exec.Command(bin, "plugin", "run", "file", "--config", "config.json")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("{\"event\":\"first\",\"distinct_id\":\"ada\"}\n\n{\"event\":\"second\"}\n")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "1-2: committed through 2") {
		t.Fatalf("%v\n%s", err, out)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
	if err != nil || strings.Count(string(stored), "\n") != 2 || !strings.Contains(string(stored), `"distinct_id":"ada"`) {
		t.Errorf("%v: %s", err, stored)
	}
}
