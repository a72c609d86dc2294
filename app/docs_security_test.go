package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testInDocument = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	testInCode     = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// TestNamedTestsExist checks that every test that docs/security.md gives as evidence
// exists.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		code, err := os.ReadFile(p)
		for _, match := range testInCode.FindAllSubmatch(code, -1) {
			exists[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, match := range testInDocument.FindAllStringSubmatch(readDocument(t, "docs/security.md"), -1) {
		found++
		if !exists[match[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", match[1])
		}
	}
	if found < 10 {
		t.Errorf("found only %d names of tests", found)
	}
}
