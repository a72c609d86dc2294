package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// TestProblems checks the trees in testdata. A tree is an archive with a repository and the
// file "problems", which has the output for it.
func TestProblems(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no trees", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}

			// Every repository has a guide with log messages; a tree may replace this one.
			files := fstest.MapFS{
				operatorsGuide: {Data: []byte("## Log messages\n| `server started` | |\n")},
				"main.go":      {Data: []byte("package main\n\nconst started = \"server started\"\n")},
			}
			want := ""
			for _, f := range archive.Files {
				if f.Name == "problems" {
					want = string(f.Data)
					continue
				}
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}

			r, err := readRepository(files)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, p := range r.check() {
				fmt.Fprintln(&got, p)
			}
			if got.String() != want {
				t.Errorf("got:\n%swant:\n%s", &got, want)
			}
		})
	}
}
