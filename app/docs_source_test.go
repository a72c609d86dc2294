package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testName   = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	logSection = regexp.MustCompile(`(?s)\n## Log messages\n(.*?)\n## `)
)

// TestDocumentedTestsExist checks that the tests and benchmarks that documents name
// exist. A document may give the beginning of a name.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	source := goFiles(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("../docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range slices.Concat(documents, decisions) {
		document = strings.TrimPrefix(filepath.ToSlash(document), "../")
		for _, name := range testName.FindAllString(readDocument(t, document), -1) {
			if !strings.Contains(source, "\nfunc "+name) {
				t.Errorf("%s: %s does not exist", document, name)
			}
		}
	}
}

// TestDocumentedLogMessagesExist checks that the messages of the operators guide are in
// the code.
func TestDocumentedLogMessagesExist(t *testing.T) {
	t.Parallel()
	source := goFiles(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
	section := logSection.FindString(readDocument(t, "docs/operators.md"))
	found := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			found++
			if !strings.Contains(source, `"`+match[1]) {
				t.Errorf("the log has no message %q", match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d messages", found)
	}
}

// goFiles returns the text of all Go files of the repository whose names are accepted.
func goFiles(t *testing.T, accept func(name string) bool) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "data", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(p) != ".go" || !accept(d.Name()) {
			return nil
		}
		text, err := os.ReadFile(p)
		all.WriteByte('\n')
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
