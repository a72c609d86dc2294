package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A problem is something that a document names and the repository does not have.
type problem struct {
	file string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text) }

// A repository is what the checks know of a source tree.
type repository struct {
	files     fs.FS
	documents []document          // Markdown
	workflows []document          // YAML below .github
	tests     map[string][]string // by directory: names of tests, benchmarks and fuzz targets
	packages  []string            // directories with Go files that are not tests
	source    string              // text of all Go files that are not tests
	targets   map[string]bool     // of the Makefile

	problems []problem
}

// skipped are directories with files that are not of the repository or are made to be wrong.
var skipped = []string{".git", ".cache", "node_modules", "testdata"}

// skippedAtRoot are directories that commands write to.
var skippedAtRoot = []string{"bin", "data", "dist"}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// readRepository reads the documents and the Go files of a tree.
func readRepository(files fs.FS) (*repository, error) {
	r := &repository{files: files, tests: map[string][]string{}, targets: map[string]bool{}}
	var source strings.Builder

	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) || slices.Contains(skippedAtRoot, name) {
				return fs.SkipDir
			}
			return nil
		}

		isWorkflow := strings.HasPrefix(name, ".github/") && path.Ext(name) == ".yml"
		if !isWorkflow && name != "Makefile" && path.Ext(name) != ".md" && path.Ext(name) != ".go" {
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		text := string(content)

		directory := path.Dir(name)
		switch {
		case isWorkflow:
			r.workflows = append(r.workflows, parseDocument(name, text))
		case name == "Makefile":
			for _, match := range makeTarget.FindAllStringSubmatch(text, -1) {
				r.targets[match[1]] = true
			}
		case path.Ext(name) == ".md":
			r.documents = append(r.documents, parseDocument(name, text))
		case strings.HasSuffix(name, "_test.go"):
			for _, match := range testFunction.FindAllStringSubmatch(text, -1) {
				r.tests[directory] = append(r.tests[directory], match[1])
			}
		case path.Ext(name) == ".go":
			if !slices.Contains(r.packages, directory) {
				r.packages = append(r.packages, directory)
			}
			source.WriteString(text)
		}
		return nil
	})
	r.source = source.String()
	return r, err
}

// check returns all problems, by file and line.
func (r *repository) check() []problem {
	r.checkLinks()
	r.checkPaths()
	r.checkPackages()
	r.checkTestNames()
	r.checkTestCommands()
	r.checkLogMessages()
	r.checkMakeTargets()

	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	return r.problems
}

func (r *repository) report(d document, line int, format string, args ...any) {
	r.problems = append(r.problems, problem{d.name, line, fmt.Sprintf(format, args...)})
}

// document returns a Markdown file by its path.
func (r *repository) document(name string) (document, bool) {
	i := slices.IndexFunc(r.documents, func(d document) bool { return d.name == name })
	if i < 0 {
		return document{}, false
	}
	return r.documents[i], true
}

// exists reports whether a path or a pattern of paths leads to a file or a directory.
func (r *repository) exists(pattern string) bool {
	found, err := fs.Glob(r.files, path.Clean(pattern))
	return err == nil && len(found) > 0
}
