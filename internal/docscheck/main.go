// Docscheck compares the documents of the repository with its files.
//
// A document goes stale silently: a file is moved, a test renamed, a log message reworded, and
// the page that names it keeps the old name. Docscheck reads every Markdown file and the
// workflows, and reports what they name and the repository does not have:
//
//   - relative links, with their anchors
//   - paths in backticks
//   - packages below core that ARCHITECTURE.md leaves out
//   - tests, benchmarks and fuzz targets, and the patterns of go test commands
//   - the messages in the section "Log messages" of docs/operators.md
//   - targets of make
//
// It reads text only. It neither compiles nor links the server, so what needs one, such as its
// routes, metrics and settings, is compared with the documents by tests of package app.
//
//	go run ./internal/docscheck [DIRECTORY]
//
// prints each problem as file:line: text and exits with 1 if there is one.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}

	r, err := readRepository(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "docscheck:", err)
		os.Exit(2)
	}

	problems := r.check()
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}
