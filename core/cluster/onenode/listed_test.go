package onenode_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// background is how a package runs work in the background.
var background = regexp.MustCompile(`retry\.Service|time\.NewTicker|onenode\.Go\(`)

// unlisted are packages that the table does not need, with the reason.
var unlisted = map[string]string{
	"core/cluster":         "says which node does what",
	"core/cluster/onenode": "runs the jobs of others",
	"core/snapshot":        "polls for the packages that use it",
	"core/journal/mark":    "belongs to core/journal",
}

// Each package of core with work in the background is in the table "On many nodes" of
// ARCHITECTURE.md, which says what N nodes do.
func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## On many nodes\n")
	if !found {
		t.Fatal("there is no section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	packages := map[string]bool{}
	err = filepath.WalkDir(filepath.Join(root, "core"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err == nil && background.Match(source) {
			name, _ := filepath.Rel(root, filepath.Dir(path))
			packages[filepath.ToSlash(name)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 20 {
		t.Fatalf("only %d packages are found", len(packages))
	}
	for name := range packages {
		if unlisted[name] == "" && !strings.Contains(section, "`"+name) {
			t.Errorf("%s works in the background and is not in the table \"On many nodes\" of ARCHITECTURE.md: say which node does it and how others learn of it", name)
		}
	}
	for name := range unlisted {
		if !packages[name] {
			t.Errorf("%s has no work in the background", name)
		}
	}
}
