package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// target is a package with its mutants compiled into the binaries of tests.
type target struct {
	path    string
	mutants []*mutant
	overlay string // file for the go command
}

type listedPackage struct {
	ImportPath string
	Name       string
	Dir        string
	Export     string
	GoFiles    []string
	DepOnly    bool
}

// goList describes the package and everything that it imports.
func goList(pattern string) (listedPackage, map[string]string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,DepOnly", "--", pattern)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return listedPackage{}, nil, fmt.Errorf("go list %s: %w\n%s", pattern, err, stderr.Bytes())
	}

	var found listedPackage
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); err == io.EOF {
			return found, exports, nil
		} else if err != nil {
			return listedPackage{}, nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			if found.Name != "" {
				return listedPackage{}, nil, fmt.Errorf("%s is more than one package", pattern)
			}
			found = p
		}
	}
}

// mutatePackage writes mutated copies of the package's files and an overlay that has the
// go command read these, into dir. The tree of the package stays untouched.
func mutatePackage(pattern, dir string) (*target, error) {
	p, exports, err := goList(pattern)
	if err != nil {
		return nil, err
	}

	fset := token.NewFileSet()
	var names []string
	var files []*ast.File
	var sources [][]byte
	for _, name := range p.GoFiles {
		full := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, full, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		names, files, sources = append(names, name), append(files, file), append(sources, source)
	}

	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})}
	pkg, err := config.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}

	m := newMutator(fset, info, pkg)
	replaced := map[string]string{}
	write := func(name string, content []byte) error {
		copied := filepath.Join(dir, name)
		replaced[filepath.Join(p.Dir, name)] = copied
		return os.WriteFile(copied, content, 0o600)
	}
	for i, file := range files {
		if ast.IsGenerated(file) {
			continue
		}
		if err := write(names[i], m.rewrite(names[i], file, sources[i])); err != nil {
			return nil, err
		}
	}
	added := fmt.Sprintf("package %s%s\nconst numberOfMutants = %d\n", p.Name, helpers, len(m.mutants))
	if err := write("mutants_helpers.go", []byte(added)); err != nil {
		return nil, err
	}

	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	t := &target{path: p.ImportPath, mutants: m.mutants, overlay: filepath.Join(dir, "overlay.json")}
	return t, os.WriteFile(t.overlay, overlay, 0o600)
}

// binary is the compiled tests of a package.
type binary struct {
	path string // of the package
	dir  string // where its tests run
	file string
}

// buildTests compiles the tests of a package with the mutants of the target.
func (t *target) buildTests(pattern, file string) (*binary, error) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\n{{.Dir}}", "--", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")

	out, err = exec.Command("go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", file, pattern).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -c %s: %w\n%s", pattern, err, out)
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("%s has no tests", pattern)
	}
	return &binary{path: path, dir: dir, file: file}, nil
}
