package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lesson is a document whose commands are run, in order.
type lesson struct {
	*server
	place string // the working directory, which a command may change
}

// The tutorial for authors is followed to the letter: its commands are run, its
// program is built, and what it shows is what comes. Only what would ask the
// network is done in another way.
func TestTheTutorialTellsTheTruth(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &lesson{server: newServer(t)}
	l.place = l.dir
	instead := strings.NewReplacer(
		"guidon plugin new sink acme/picky\n", "guidon plugin new sink acme/picky --replace "+root+"\n",
		"go mod tidy\n", "cp "+root+"/go.sum .\n", // that asks the network
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
		var shows string
		if i+1 < len(steps) && steps[i+1].language == "text" {
			shows = steps[i+1].text
		}
		switch {
		case s.language == "go":
			write(t, filepath.Join(l.place, "main.go"), s.text)
		case s.text == "guidon serve\n":
			config, err := os.ReadFile(filepath.Join(l.place, "guidon.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, l.config(), string(config))
			l.start(t)
		case s.language == "sh":
			l.follow(t, instead.Replace(s.text), shows)
		}
	}
	if l.cmd == nil || len(steps) < 12 {
		t.Errorf("the tutorial has only %d steps", len(steps))
	}
}

// follow runs a block and compares what it prints with what the document shows.
// With a server running that may take a moment.
func (l *lesson) follow(t *testing.T, block, shows string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		said := l.run(t, block)
		lacks := ""
		for line := range strings.Lines(shows) {
			for _, word := range words(line) {
				if !strings.Contains(said, word) {
					lacks = word
				}
			}
		}
		if lacks == "" {
			return
		}
		if l.cmd == nil || strings.HasPrefix(block, "curl") || time.Now().After(deadline) {
			t.Fatalf("%s\nshows no %q but\n%s", block, lacks, said)
		}
	}
}

// words are the parts of a line that must come: those of a table one by one,
// others as they are.
func words(line string) []string {
	line = strings.TrimSuffix(line, "\n")
	if strings.HasPrefix(line, "picky ") {
		return strings.Fields(line)
	}
	return []string{line}
}

// run runs a block with the guidon under test in the working directory.
func (l *lesson) run(t *testing.T, block string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	where := filepath.Join(l.dir, "where")
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -e\n"+block+"pwd > '"+where+"'\n")
	cmd.Dir, cmd.WaitDelay = l.place, 5*time.Second
	cmd.Env = append(l.env(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "CGO_ENABLED=0", "GOFLAGS=-mod=mod",
		"PROJECT_KEY="+l.project, "GUIDON_PERSONAL_KEY="+l.personal)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", block, err, out)
	}
	now, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	l.place = strings.TrimSpace(string(now))
	return string(out)
}
