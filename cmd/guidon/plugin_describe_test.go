package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/sdk/plugintest"
	"github.com/guidonhq/guidon/sdk/plugintest/inspect"
)

// script writes an executable script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// runAlone runs a plugin command in an empty directory, without any configuration, and
// checks that no temporary file is left.
func runAlone(t *testing.T, args ...string) (string, error) {
	t.Helper()
	temp, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	cmd := exec.Command(bin, append([]string{"plugin"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp}
	out, err := cmd.CombinedOutput()
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("plugin %s: left %s", args, left)
	}
	return string(out), err
}

func TestPluginDescribeNeedsNoServer(t *testing.T) {
	t.Parallel()
	cidr := script(t, "exec '"+bin+"' plugin exec cidr")
	for args, want := range map[string][]string{
		"describe --file " + cidr:                {"cidr 1.0.0 (matcher), contract 1.", "The matcher has no options.", "cidr/contains"},
		"describe file":                          {"OPTION", "rotate_age", "duration", "required"},
		"describe webhook":                       {"Options of the sink:", "Options of the notifier:", "string (secret)"},
		"describe webhook --kind notifier":       {"Options of the notifier:"},
		"check --file " + cidr:                   {"handshake  speaks mutual TLS", " 0 failed, ", "guidon plugin test runs all cases"},
		"check --file " + cidr + " --kind=sink":  {"cidr is a matcher and no sink"},
		"describe --file /bin/true":              {"true: not a Guidon plugin: it ended before the handshake (exit status 0)"},
		"check --file /bin/true":                 {"true: not a Guidon plugin: it ended before the handshake (exit status 0)"},
		"describe --file /bin/echo":              {"is not a handshake line"},
		"describe --file /etc/passwd":            {"neither a program for this machine nor a script"},
		"describe --file " + filepath.Dir(cidr):  {"is not a file that can be run"},
		"describe --file ./no-such-file":         {"no such file"},
		"describe":                               {"name a bundled plugin, or with --file the executable"},
		"describe flie":                          {`no bundled plugin is named "flie"`},
		"describe file --file x":                 {"exclude each other"},
		"check archive --file x":                 {"exclude each other"},
		"check":                                  {"name an instance, or with --file the executable"},
		"describe cidr --config /etc/passwd":     {"is not a JSON object"},
		"describe --file " + script(t, "exit 7"): {"exit status 7"},
	} {
		out, err := runAlone(t, strings.Fields(args)...)
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("plugin %s: %v: %q is not in\n%s", args, err, text, out)
			}
		}
		if ok := strings.Contains(out, "contract 1.") || strings.Contains(out, " 0 failed"); ok != (err == nil) {
			t.Errorf("plugin %s: %v\n%s", args, err, out)
		}
	}
}

func TestPluginDescribePrintsJSON(t *testing.T) {
	t.Parallel()
	out, err := runAlone(t, "describe", "file", "--json")
	var d inspect.Description
	if err != nil || json.Unmarshal([]byte(out), &d) != nil || d.Name != "file" || len(d.Configs) != 1 || !strings.HasPrefix(d.Protocol, "1.") {
		t.Fatalf("%v: %s", err, out)
	}
	if c := d.Configs[0]; c.Kind != "sink" || c.Options[0].Name != "path" || !c.Options[0].Required || !strings.Contains(string(c.Schema), "rotate_age") {
		t.Errorf("got %+v", c)
	}
	out, err = runAlone(t, "check", "--file", script(t, "exec '"+bin+"' plugin exec schedule"), "--json")
	var checked struct {
		Plugin  inspect.Description
		Reports []plugintest.Report
	}
	if err != nil || json.Unmarshal([]byte(out), &checked) != nil || checked.Plugin.Name != "schedule" || len(checked.Plugin.Operators) == 0 ||
		len(checked.Reports) != 1 || checked.Reports[0].Failed > 0 || checked.Reports[0].Passed < 10 {
		t.Errorf("%v: %s", err, out)
	}
}

// A program that is no plugin and starts a process in a session of its own leaves none.
func TestPluginDescribeEndsWhatTheFileStarts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	started := script(t, `setsid sh -c 'echo $$ > "`+pidFile+`"; exec sleep 1000' & while [ ! -s "`+pidFile+`" ]; do sleep 0.01; done; echo hello; sleep 1000`)
	out, err := runAlone(t, "describe", "--file", started)
	if err == nil || !strings.Contains(out, `"hello\n" is not a handshake line`) {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		line, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/cmdline")
		if len(line) > 0 { // a zombie has no command line
			return fmt.Sprintf("process %s runs: %q", text, line)
		}
		return ""
	})
}
