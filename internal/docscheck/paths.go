package main

import (
	"slices"
	"strings"
)

// roots are the directories with which a path in backticks begins.
var roots = []string{
	".ci", ".github", "api", "app", "cmd", "console", "core", "docs", "e2e", "examples",
	"migrations", "packaging", "plugins", "sdk",
}

// checkPaths looks for the paths in backticks. A path begins with a directory of the
// repository; it may have a * and end in /... .
func (r *repository) checkPaths() {
	for _, d := range r.documents {
		if isHistory(d.name) {
			continue
		}
		for _, c := range d.code() {
			name := strings.TrimSuffix(c.text, "/...")
			root, _, below := strings.Cut(name, "/")
			if !c.span || !below || !slices.Contains(roots, root) || strings.ContainsAny(name, " <>{}$") {
				continue
			}
			if !r.exists(name) {
				r.report(d, c.line, "%s does not exist", c.text)
			}
		}
	}
}

// isHistory reports whether a document tells what was, and so names what is gone.
func isHistory(name string) bool {
	return name == "CHANGELOG.md" || name == "docs/glossary.md" || strings.HasPrefix(name, "docs/decisions/")
}

// checkPackages checks that ARCHITECTURE.md names every package below core, except those that
// only help tests.
func (r *repository) checkPackages() {
	architecture, _ := r.document("ARCHITECTURE.md")
	named := map[string]bool{}
	for _, c := range architecture.code() {
		named[c.text] = true
	}

	for _, pkg := range r.packages {
		if strings.HasPrefix(pkg, "core/") && !strings.HasSuffix(pkg, "test") && !named[pkg] {
			r.report(document{name: "ARCHITECTURE.md"}, 1, "the map does not name `%s`", pkg)
		}
	}
}
