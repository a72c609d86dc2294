package main_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The test runs each command of the guide for operators, in order, beside a running
// server on the same directory.
func TestOperatorsGuideCommandsRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	text, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), strings.Replace(string(text), "name: lines", "name: archive", 1))
	s.start(t)
	until(t, func() string {
		var one struct{ State string }
		if s.get(t, "/api/plugins/archive/", &one); one.State != "ready" {
			return one.State
		}
		return ""
	})
	path := "PATH=" + fakeNPM(t) + ":" + filepath.Dir(bin) + ":" + os.Getenv("PATH")
	write(t, filepath.Join(s.dir, "acme-warehouse"), "#!/bin/sh\nexec '"+bin+"' plugin exec file\n")
	ran := 0
	for _, command := range commandLines(t, "../../docs/operators.md") {
		if !strings.HasPrefix(command, "guidon ") || strings.Contains(command, "serve") || strings.Contains(command, ">") {
			continue
		}
		ran++
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir, cmd.Env = s.dir, append(s.env(), path, "GUIDON_PERSONAL_KEY="+s.personal)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if ran < 5 {
		t.Errorf("found only %d commands", ran)
	}
}

// The test runs the commands of the section on plugins by API in one shell.
func TestOperatorsGuidePluginsByAPI(t *testing.T) {
	needCommand(t, "curl", "curl")
	t.Parallel()
	s := newServer(t)
	s.start(t)
	var script string
	for _, block := range fencedBlocks(t, "../../docs/operators.md", "sh") {
		if strings.Contains(block, "/api/plugins/") {
			script += strings.ReplaceAll(block, "http://localhost:8000", s.url)
		}
	}
	cmd := exec.Command("bash", "-euxo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "PERSONAL_KEY="+s.personal)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{`"plugin":"webhook"`, `"managed_by":"api"`, `"rotate_bytes":"64MiB"`, `"version":2`, "X DELETE"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("no %s: %v\n%s", want, err, out)
		}
	}
}

// fakeNPM returns a directory with an npm that packs a library without a network.
func fakeNPM(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "npm"), `#!/bin/sh
mkdir -p package/dist && echo 'window.posthog' > package/dist/array.js && tar czf "$6/posthog-js-1.0.0.tgz" package
echo '[{"name":"posthog-js","version":"1.0.0","filename":"posthog-js-1.0.0.tgz"}]'
`)
	if err := os.Chmod(filepath.Join(dir, "npm"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The programs of the guides for authors are whole files in the format of gofmt.
// TestAuthorsGuideProgramsWork and TestTutorialRuns build them.
func TestGuideProgramsAreFormatted(t *testing.T) {
	t.Parallel()
	for _, guide := range []string{"../../docs/plugins/authors.md", "../../docs/plugins/tutorial.md"} {
		programs := fencedBlocks(t, guide, "go")
		if len(programs) == 0 {
			t.Errorf("%s has no program", guide)
		}
		for _, program := range programs {
			formatted, err := format.Source([]byte(program))
			if err != nil || string(formatted) != program {
				t.Errorf("%s: gofmt changes a program, or fails: %v\n%s", guide, err, program)
			}
		}
	}
}

// The test builds the programs of the authors' guide outside the tree against this
// checkout and runs the first as a third-party plugin with a pinned checksum.
func TestAuthorsGuideProgramsWork(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := newServer(t)
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	programs := fencedBlocks(t, "../../docs/plugins/authors.md", "go")
	if len(programs) != 3 {
		t.Errorf("%d programs: want a sink, a notifier and a matcher", len(programs))
	}
	for i, program := range programs[1:] {
		other := filepath.Join(dir, "other"+strconv.Itoa(i))
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(other, "main.go"), program)
	}
	write(t, filepath.Join(dir, "main.go"), programs[0])
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), string(sum))
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/guidonhq/guidon\n", "module example.com/lines\n", 1)
	write(t, filepath.Join(dir, "go.mod"), text+"\nrequire github.com/guidonhq/guidon v0.0.0\n\nreplace github.com/guidonhq/guidon => "+root+"\n")
	if out, err := shell(dir, "CGO_ENABLED=0 go build -o lines . && CGO_ENABLED=0 go vet ./..."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checksum, err := shell(dir, "sha256sum lines | cut -d' ' -f1")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), "plugins:\n  instances:\n    - name: acme\n      kind: sink\n      use: "+filepath.Join(dir, "lines")+
		"\n      sha256: "+strings.TrimSpace(checksum)+"\n      config: {path: "+s.lines+"}\n")
	s.start(t)
	ids, where, body := captureRequest(s.project, 0, 0)
	if code, err := s.post(where, body); err != nil || code != 200 {
		t.Fatalf("%d %v", code, err)
	}
	acked := map[string]bool{}
	for _, id := range ids {
		acked[id] = true
	}
	until(t, func() string { return missingEvents(acked, sinkEvents(t, s), "the file") })
}

// commandLines returns the lines of the ```sh blocks of a document.
func commandLines(t *testing.T, path string) []string {
	t.Helper()
	return strings.Split(fencedText(t, path, "sh"), "\n")
}

// fenced returns the blocks of a language in a document, as one text.
func fencedText(t *testing.T, path, language string) string {
	t.Helper()
	return strings.Join(fencedBlocks(t, path, language), "")
}

// blocks returns the blocks of a language in a document.
func fencedBlocks(t *testing.T, path, language string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, part := range strings.Split(string(text), "```") {
		if body, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			out = append(out, body)
		}
	}
	return out
}
