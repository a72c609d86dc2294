package sdk_test

import (
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/exp/apidiff"
)

var update = flag.Bool("update", false, "write testdata/api*.txt anew")

// published are the packages that authors build against, and where their
// exported names are written down. Those of sdk/pb follow from the contract,
// which has a check of its own.
var published = map[string]string{".": "testdata/api.txt", "./plugintest": "testdata/api_plugintest.txt"}

// growing are the constants that change with each release.
var growing = []string{"Version", "ProtocolMinor"}

// TestTheAPIIsTheOneWrittenDown compares the exported names with the recorded
// ones. Recorded names stay, because plugins are built against them. -update
// records new names, so that they show in a review.
func TestTheAPIIsTheOneWrittenDown(t *testing.T) {
	t.Parallel()
	for dir, path := range published {
		now := exported(load(t, dir))
		if *update {
			if err := os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range before {
			if !slices.Contains(now, line) {
				t.Errorf("%s: gone or changed, and plugins may use it: %s", path, line)
			}
		}
		for _, line := range now {
			if !slices.Contains(before, line) {
				t.Errorf("%s: new: %s\nif it is meant to stay for ever: go test ./sdk -run TestTheAPI -update", path, line)
			}
		}
	}
}

// TestTheAPIKeepsToTheLastRelease compares the packages with those of the last release,
// whose sdk directory .ci/api has unpacked, as far as it had them.
func TestTheAPIKeepsToTheLastRelease(t *testing.T) {
	t.Parallel()
	released := os.Getenv("GUIDON_API_BASELINE")
	if released == "" {
		t.Skip("make api runs it with the last release")
	}

	for dir := range published {
		before := filepath.Join(released, dir)
		if _, err := os.Stat(before); err != nil {
			continue
		}
		for _, c := range apidiff.Changes(load(t, before), load(t, dir)).Changes {
			if !c.Compatible && !slices.ContainsFunc(growing, func(name string) bool { return strings.HasPrefix(c.Message, name+":") }) {
				t.Errorf("since the last release: %s: %s", dir, c.Message)
			}
		}
	}
}

// load reads the types of the package in a directory from what the compiler
// exports.
func load(t *testing.T, dir string) *types.Package {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, path := map[string]string{}, ""
	for line := range strings.Lines(string(out)) {
		var file string
		path, file, _ = strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	// The package itself is the last of its dependencies.
	p, err := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	}).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// exported lists what the package offers, a line each, sorted.
func exported(p *types.Package) []string {
	short := types.RelativeTo(p)
	var lines []string
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		named, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			line := types.ObjectString(o, short)
			if c, constant := o.(*types.Const); constant && !slices.Contains(growing, name) {
				line += " = " + c.Val().ExactString()
			}
			lines = append(lines, line)
			continue
		}
		lines = append(lines, members(o, named, short)...)
	}
	slices.Sort(lines)
	return lines
}

// members lists a type with its fields and methods.
func members(o types.Object, named *types.Named, short types.Qualifier) []string {
	var lines []string
	switch u := named.Underlying().(type) {
	case *types.Struct:
		lines = append(lines, "type "+o.Name()+" struct")
		for f := range u.Fields() {
			if f.Exported() {
				lines = append(lines, fmt.Sprintf("field %s.%s %s", o.Name(), f.Name(), types.TypeString(f.Type(), short)))
			}
		}
	case *types.Interface:
		lines = append(lines, "type "+o.Name()+" interface")
		for m := range u.Methods() {
			lines = append(lines, fmt.Sprintf("method %s.%s%s", o.Name(), m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func")))
		}
	default:
		lines = append(lines, "type "+o.Name()+" "+types.TypeString(u, short))
	}
	for m := range named.Methods() {
		if m.Exported() {
			lines = append(lines, types.ObjectString(m, short))
		}
	}
	return lines
}
