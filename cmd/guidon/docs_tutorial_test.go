package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tutorial runs the commands of a document in order.
type tutorial struct {
	*server
	workDir string // commands may change it
}

// The test follows the tutorial for authors: it runs the commands, builds the
// program and compares the output with the blocks of type text. It replaces only
// the commands that need the network.
func TestTutorialRuns(t *testing.T) {
	longTest(t)
	needCommand(t, "curl", "curl")
	needCommand(t, "make", "make")
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &tutorial{server: newServer(t)}
	l.workDir = l.dir
	replacements := strings.NewReplacer(
		"guidon plugin new sink acme/picky\n", "guidon plugin new sink acme/picky --replace "+root+"\n",
		"go mod tidy\n", "cp "+root+"/go.sum .\n", // go mod tidy needs the network
		"http://127.0.0.1:8000", l.url,
	)
	type step struct{ language, text string }
	var steps []step
	text, err := os.ReadFile("../../docs/plugins/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```") {
		if language, body, ok := strings.Cut(part, "\n"); ok && i%2 == 1 {
			steps = append(steps, step{language, body})
		}
	}
	for i, s := range steps {
		var expected string
		if i+1 < len(steps) && steps[i+1].language == "text" {
			expected = steps[i+1].text
		}
		switch {
		case s.language == "go":
			write(t, filepath.Join(l.workDir, "main.go"), s.text)
		case s.text == "guidon serve\n":
			config, err := os.ReadFile(filepath.Join(l.workDir, "guidon.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, l.config(), string(config))
			l.start(t)
		case s.language == "sh":
			l.runUntilShown(t, replacements.Replace(s.text), expected)
		}
	}
	if l.cmd == nil || len(steps) < 12 {
		t.Errorf("the tutorial has only %d steps", len(steps))
	}
}

// runUntilShown runs a block until its output contains what the document shows.
// Without a server the output of the first run must match.
func (l *tutorial) runUntilShown(t *testing.T, block, expected string) {
	t.Helper()
	for deadline := waitDeadline(t, patience); ; time.Sleep(100 * time.Millisecond) {
		output := l.run(t, block)
		missingWord := ""
		for line := range strings.Lines(expected) {
			for _, word := range expectedWords(line) {
				if !strings.Contains(output, word) {
					missingWord = word
				}
			}
		}
		if missingWord == "" {
			return
		}
		if l.cmd == nil || strings.HasPrefix(block, "curl") || time.Now().After(deadline) {
			t.Fatalf("%s\nprints no %q but\n%s", block, missingWord, output)
		}
	}
}

// expectedWords returns the parts of a line that the output must contain: each
// cell of a table row, or the whole line.
func expectedWords(line string) []string {
	line = strings.TrimSuffix(line, "\n")
	if strings.HasPrefix(line, "picky ") {
		return strings.Fields(line)
	}
	return []string{line}
}

// run runs a block in the working directory, with the guidon under test in PATH.
func (l *tutorial) run(t *testing.T, block string) string {
	t.Helper()
	where := filepath.Join(l.dir, "where")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -e\n"+block+"pwd > '"+where+"'\n")
	cmd.Dir = l.workDir
	cmd.Env = append(l.env(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod",
		"PROJECT_KEY="+l.project, "GUIDON_PERSONAL_KEY="+l.personal)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", block, err, out)
	}
	now, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	l.workDir = strings.TrimSpace(string(now))
	return string(out)
}
