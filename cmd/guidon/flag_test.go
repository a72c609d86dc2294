package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLineGuideRuns runs the commands of the guide in one shell.
func TestCommandLineGuideRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	tool{s}.capture(t, "signed up", "ada", `{"plan":"pro","$set":{"email":"ada@example.com"}}`)
	script := strings.ReplaceAll(fencedText(t, "../../docs/command-line.md", "sh"), "http://localhost:8000", s.url)
	if strings.Count(script, "guidon ") < 15 {
		t.Fatalf("too few commands:\n%s", script)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "GUIDON_CONTEXTS="+filepath.Join(cmd.Dir, "contexts.yaml"), "PERSONAL_KEY="+s.personal)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		"as context local, project 1 (My project)",
		"would change flag new-checkout (version 1, on): its condition sets reach 10 % of 1 of 1 persons; with the change, 25 % of 1 of 1 persons",
		"new-checkout is off, version 3",
		`true: email icontains "@example.com"; it is "grace@example.com" (override)`,
		"rollout 25 %: hash 0.",
		"active: true -> false",
		"new-checkout is on, version 6",
		"new-checkout is deleted, version 7",
		"1 of 1 events match",
		"would change action Signups (id 1): it matches 1 event of the last three months; with the change, 0 of the newest 1 event",
		"would erase 1 person (ada@example.com) with 1 distinct id, and erase 1 event",
		"signed up of ada: stored",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// flagTool runs flag commands against a server without a context.
type flagTool struct {
	*server
	extra []string
}

func (f flagTool) run(args ...string) (out string, code int) {
	cmd := exec.Command(bin, append([]string{"flag"}, args...)...)
	cmd.Dir = f.dir
	cmd.Env = append(f.env(), "GUIDON_CONTEXTS="+filepath.Join(f.dir, "contexts.yaml"), "GUIDON_PERSONAL_KEY="+f.personal)
	cmd.Env = append(cmd.Env, f.extra...)
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), exit.ExitCode()
	}
	return string(text), 0
}

func TestFlagCommandsThatFail(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	tool := flagTool{server: s}
	if out, code := tool.run("create", "beta", "--rollout", "50"); code != 0 {
		t.Fatal(out)
	}
	write(t, filepath.Join(s.dir, "wrong.yaml"), "filters: [")
	write(t, filepath.Join(s.dir, "refused.yaml"), "filters: {groups: 7}")
	write(t, filepath.Join(s.dir, "sets.yaml"), "filters: {groups: []}")
	for _, test := range []struct {
		args []string
		env  string
		code int
		want string
	}{
		{[]string{"off", "beta"}, "", 2, "confirm with --yes"},
		{[]string{"get", "bet"}, "", 3, `no flag has the key "bet"`},
		{[]string{"get", "BETA"}, "", 3, `no flag has the key "BETA"`},
		{[]string{"create", "beta"}, "", 1, "key: There is already a feature flag with this key."},
		{[]string{"create", "a b"}, "", 1, "key: "},
		{[]string{"edit", "beta", "--rollout", "101"}, "", 1, "--rollout: 101 is not between 0 and 100"},
		{[]string{"edit", "beta", "--file", "wrong.yaml", "-y"}, "", 1, "wrong.yaml: yaml"},
		{[]string{"edit", "beta", "--file", "refused.yaml", "-y"}, "", 1, "filters"},
		{[]string{"edit", "beta", "--file", "sets.yaml", "--rollout", "3", "-y"}, "", 1, "the flag has not one condition set"},
		{[]string{"edit", "beta", "--file", "none.yaml", "-y"}, "", 1, "no such file"},
		{[]string{"edit", "beta", "-y"}, "EDITOR=", 1, "no terminal for an editor"},
		{[]string{"edit", "beta", "-y"}, "EDITOR=false", 1, "editor false"},
		{[]string{"edit", "beta", "-y"}, "EDITOR=true", 0, "beta: nothing to change"},
		{[]string{"rollback", "beta", "1", "-y"}, "", 1, "name an earlier one"},
		{[]string{"explain", "beta", "u", "-p", "email"}, "", 1, "is not NAME=VALUE"},
		{[]string{"list"}, "GUIDON_PERSONAL_KEY=phx_wrong", 4, "invalid"},
		{[]string{"list"}, "GUIDON_PERSONAL_KEY=", 1, "guidon login"},
		{[]string{"list", "--server", "http://" + freeAddress(t)}, "", 5, "no server answers"},
		{[]string{"list", "--server", "ftp://x"}, "", 1, "is not an http or https URL"},
		{[]string{"list", "--project", "999"}, "", 3, ""},
		{[]string{"list", "--context", "none"}, "", 3, "guidon login adds one"},
		{[]string{"list", "--wrong"}, "", 80, "unknown flag --wrong"},
	} {
		tool.extra = nil
		if test.env != "" {
			tool.extra = []string{test.env}
		}
		out, code := tool.run(test.args...)
		if code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", test.args, code, test.code, test.want, out)
		}
	}
	out, code := tool.run("list", "-o", "json")
	var flags []struct {
		Key     string
		Version int
	}
	if err := json.Unmarshal([]byte(out), &flags); err != nil || code != 0 || len(flags) != 1 || flags[0].Version != 1 {
		t.Errorf("the flag was changed: %s", out)
	}
}

// TestFlagEditInAnEditor checks that only changed fields are sent.
func TestFlagEditInAnEditor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	tool := flagTool{server: s}
	if out, code := tool.run("create", "beta", "--name", "before"); code != 0 {
		t.Fatal(out)
	}
	editor := filepath.Join(s.dir, "editor")
	write(t, editor, "#!/bin/sh\nsed -i 's/^name: .*/name: after/' \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}
	tool.extra = []string{"VISUAL=" + editor}
	if out, code := tool.run("edit", "beta", "--dry-run", "-o", "json"); code != 0 || !strings.HasSuffix(out, "{\n  \"name\": \"after\",\n  \"version\": 1\n}\n") {
		t.Errorf("dry run: %d\n%s", code, out)
	}
	if out, code := tool.run("edit", "beta", "--yes"); code != 0 || !strings.Contains(out, "beta is on, version 2") {
		t.Errorf("edit: %d\n%s", code, out)
	}
	if out, _ := tool.run("list"); !strings.Contains(out, "after") {
		t.Errorf("the name was not changed:\n%s", out)
	}
}

// TestFlagEditKeepsLargeNumbers changes the rollout of a flag whose filter has a number
// that a float64 cannot hold, by an option and in an editor.
func TestFlagEditKeepsLargeNumbers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	tool := flagTool{server: s}
	write(t, filepath.Join(s.dir, "large.json"), `{"filters":{"groups":[{"properties":[{"key":"id","type":"person","operator":"exact","value":[9007199254740993]}],"rollout_percentage":1}]}}`)
	if out, code := tool.run("create", "beta", "--file", "large.json"); code != 0 {
		t.Fatal(out)
	}
	if out, code := tool.run("edit", "beta", "--rollout", "2", "-y"); code != 0 {
		t.Fatal(out)
	}
	tool.extra = []string{`VISUAL=sed -i s/rollout_percentage:.2/rollout_percentage:\x203/`}
	if out, code := tool.run("edit", "beta", "-y"); code != 0 || !strings.Contains(out, "version 3") {
		t.Fatal(out)
	}
	if out, _ := tool.run("get", "beta", "-o", "json"); !strings.Contains(out, "9007199254740993") || !strings.Contains(out, `"rollout_percentage": 3`) {
		t.Errorf("the number was changed:\n%s", out)
	}
}
