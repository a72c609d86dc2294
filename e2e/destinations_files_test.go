//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDestinationFile reads the lines of the file sink, whose process is killed. Each
// line is complete; an event may be there twice.
func TestDestinationFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "copy.ndjson")
	s := startWith(t, sinkYAML("copy", "file", "path: "+path))
	want := deliver(t, s, destination{plugin: "copy", progress: s.sinkProgress(t, "copy")})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	arrived, order := arrivals{}, []string{}
	for line := range strings.Lines(string(text)) {
		e, complete := parseLine(line)
		if !complete {
			t.Fatalf("line %q", line)
		}
		arrived.checkLine(t, want, e.UUID, strings.TrimSuffix(line, "\n"))
		order = append(order, e.UUID)
	}
	arrived.checkComplete(t, want)
	checkOrder(t, want, order)
}

// TestDestinationParquet reads the files of the parquet sink, whose process is killed,
// with DuckDB: each event is there once.
func TestDestinationParquet(t *testing.T) {
	longTest(t)
	t.Parallel()
	python, dir := install(t, "destinations-python"), t.TempDir()
	s := startWith(t, sinkYAML("lake", "parquet", "flush_age: 1s\npath: "+dir))
	want := deliver(t, s, destination{plugin: "lake", progress: s.sinkProgress(t, "lake")})
	checkParquet(t, want, output(t, python, "venv/bin/python", "parquet.py", filepath.Join(dir, "**", "*.parquet")))
}

// checkParquet compares the lines that parquet.py prints.
func checkParquet(t *testing.T, want map[string]string, lines []byte) {
	t.Helper()
	arrived := arrivals{}
	arrived.checkRows(t, want, string(lines))
	arrived.checkOnce(t, want)
}
