package app_test

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan     = regexp.MustCompile("`([^`\n]+)`")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocumentedPathsExist checks that every path in backticks in the documents on
// the structure exists. A path begins with a directory of the repository; it may have
// a * or end in /... .
func TestDocumentedPathsExist(t *testing.T) {
	t.Parallel()
	roots := []string{".ci", ".github", "api", "app", "cmd", "core", "docs", "e2e", "migrations", "plugins", "sdk"}
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		found := 0
		for _, match := range codeSpan.FindAllStringSubmatch(readDocument(t, document), -1) {
			name := strings.TrimSuffix(match[1], "/...")
			root, _, below := strings.Cut(name, "/")
			if !below || !slices.Contains(roots, root) || strings.ContainsAny(name, " <>") {
				continue
			}
			found++
			if files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(name))); err != nil || len(files) == 0 {
				t.Errorf("%s: %s does not exist", document, match[1])
			}
		}
		if found < 10 {
			t.Errorf("%s: found only %d paths", document, found)
		}
	}
}

// TestPackagesAreOnTheMap checks that ARCHITECTURE.md names every package below core,
// except those that only help tests.
func TestPackagesAreOnTheMap(t *testing.T) {
	t.Parallel()
	document := readDocument(t, "ARCHITECTURE.md")
	err := filepath.WalkDir(filepath.Join("..", "core"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || strings.HasSuffix(p, "test") {
			return err
		}
		if files, err := filepath.Glob(filepath.Join(p, "*.go")); err != nil || len(files) == 0 {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(p), "../")
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentLinksResolve checks the relative links of all Markdown files, with
// their anchors.
func TestDocumentLinksResolve(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "data", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(p) != ".md" {
			return nil
		}
		document := strings.TrimPrefix(filepath.ToSlash(p), "../")
		for _, match := range markdownLink.FindAllStringSubmatch(readDocument(t, document), -1) {
			target, err := url.Parse(match[1])
			if err != nil || target.Host != "" {
				continue
			}
			file := document
			if target.Path != "" {
				file = path.Join(path.Dir(document), target.Path)
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: link to %s: no such file", document, match[1])
			} else if target.Fragment != "" && !slices.Contains(anchors(readDocument(t, file)), target.Fragment) {
				t.Errorf("%s: link to %s: no such heading", document, match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors returns the anchors of the headings of a Markdown text: lower case, with
// dashes for spaces and without punctuation.
func anchors(text string) []string {
	var out []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// readDocument returns a file of the repository.
func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
