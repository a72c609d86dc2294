package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences that guidon may contain, by the identifiers of
// licensecheck, which are mostly those of SPDX. GooglePatentsFile is the additional
// patent grant of Go's own modules.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GooglePatentsFile", "ISC", "MIT", "MPL-2.0", "Unlicense"}

// component is a module, or the standard library, with its licences.
type component struct {
	name, version string
	licences      []string // identifiers in order
	texts         []string // of licence and notice files
}

// goPackage is a package as go list prints it.
type goPackage struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// listPackages returns the packages linked into the given one.
func listPackages(path string) ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", path)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// readComponents returns the standard library and the modules of packages by
// name, with the licence files that cover the packages.
func readComponents(packages []goPackage) ([]component, error) {
	files := map[string][]string{}
	versions := map[string]string{}
	for _, p := range packages {
		if p.Module == nil || p.Module.Main {
			continue
		}
		name := p.Module.Path
		versions[name] = p.Module.Version
		found, err := licenceFiles(p.Dir, p.Module.Dir)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if !slices.Contains(files[name], file) {
				files[name] = append(files[name], file)
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	const standard = "Go standard library"
	versions[standard], files[standard] = "", []string{filepath.Join(strings.TrimSpace(string(root)), "LICENSE")}
	var out []component
	for name, version := range versions {
		slices.Sort(files[name])
		c, err := newComponent(name, version, files[name])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b component) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([.-].*)?$`)

// licenceFiles returns the licence files in dir and above, up to root.
func licenceFiles(dir, root string) ([]string, error) {
	var out []string
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read a module: %w", err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && licenceName.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
		if dir == root || len(dir) <= len(root) {
			return out, nil
		}
		dir = filepath.Dir(dir)
	}
}

// newComponent reads the licence files of a module and recognizes the licences.
func newComponent(name, version string, files []string) (component, error) {
	c := component{name: name, version: version}
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of a module
		if err != nil {
			return c, fmt.Errorf("%s: read its licence: %w", name, err)
		}
		lines := strings.Split(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t")
		}
		c.texts = append(c.texts, strings.Trim(strings.Join(lines, "\n"), "\n"))
		for _, m := range licensecheck.Scan(raw).Match {
			if !slices.Contains(c.licences, m.ID) && !m.IsURL {
				c.licences = append(c.licences, m.ID)
			}
		}
	}
	slices.Sort(c.licences)
	return c, c.check()
}

// check returns an error unless every licence is allowed and there is one.
func (c *component) check() error {
	if len(c.licences) == 0 {
		return fmt.Errorf("%s: no licence is recognized", c.name)
	}
	for _, id := range c.licences {
		if !slices.Contains(allowed, id) {
			return fmt.Errorf("%s: the licence %s is not allowed", c.name, id)
		}
	}
	return nil
}
