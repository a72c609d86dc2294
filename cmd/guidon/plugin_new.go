package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/template"
)

// scaffold holds the templates of the module that plugin new writes, by kind.
//
//go:embed all:scaffold
var scaffold embed.FS

type pluginNewCmd struct {
	Kind    string `arg:"" enum:"sink,notifier,matcher" help:"sink, notifier or matcher."`
	Name    string `arg:"" help:"Name of the plugin in lower case, with the name of its maker first: acme/warehouse."`
	Lang    string `enum:"go,python,rust" default:"go" help:"Language: go, python or rust."`
	Module  string `help:"Path of the Go module; default: example.com/NAME." placeholder:"PATH"`
	Dir     string `help:"Directory to create; default: the last part of the name." placeholder:"DIR"`
	SDK     string `name:"sdk" help:"Version of github.com/guidonhq/guidon to require; default: that of this binary." placeholder:"VERSION"`
	Replace string `help:"Directory of a Guidon checkout to build against instead of a release." placeholder:"DIR"`
}

// module holds the values of the templates.
type module struct {
	Kind, Name, Binary, Operator, Module, Go, Guidon, Replace, Sample string
}

var (
	pluginName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$`)
	release    = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
	notInName  = regexp.MustCompile(`[^a-z0-9_-]`)
)

// Run writes a module that compiles and passes the conformance kit without changes.
func (c pluginNewCmd) Run(e *env) error {
	m, err := c.module()
	if err != nil {
		return err
	}
	dir := c.Dir
	if dir == "" {
		dir = m.Binary
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err // an existing directory is never written to
	}
	next := "make test"
	switch c.Lang {
	case "python":
		err = newPython(dir, m)
	case "rust":
		err = newRust(dir, m)
	default:
		next, err = "go mod tidy && make test", newGo(dir, m)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	_, err = fmt.Fprintf(e.out, "%s contains a working %s. Next:\n\n  cd %s && %s\n", dir, c.Kind, dir, next)
	return err
}

// newGo writes a Go module.
func newGo(dir string, m module) error {
	for _, part := range []string{"common", m.Kind} {
		if err := writeTemplates(dir, path.Join("scaffold", part), m); err != nil {
			return err
		}
	}
	return nil
}

func (c pluginNewCmd) module() (module, error) {
	if !pluginName.MatchString(c.Name) {
		return module{}, fmt.Errorf("a name is lower case letters, digits, dots and dashes, with at most one slash, not %q", c.Name)
	}
	m := module{Kind: c.Kind, Name: c.Name, Binary: path.Base(c.Name), Module: c.Module, Guidon: c.SDK, Go: goVersion()}
	m.Operator = notInName.ReplaceAllString(m.Binary, "-")
	if m.Module == "" {
		m.Module = "example.com/" + c.Name
	}
	if c.Replace != "" {
		dir, err := filepath.Abs(c.Replace)
		if err != nil {
			return m, err
		}
		if _, err := os.Stat(filepath.Join(dir, "sdk", "sdk.go")); err != nil {
			return m, fmt.Errorf("--replace: %s is no checkout of Guidon", dir)
		}
		m.Replace, m.Guidon = dir, "v0.0.0"
	}
	if m.Guidon == "" && (c.Lang == "" || c.Lang == "go") {
		if m.Guidon = version; !release.MatchString(version) {
			return m, errors.New("this binary is no release: set --sdk VERSION, or --replace DIR with a checkout")
		}
	}
	sample, err := fs.ReadFile(scaffold, path.Join("scaffold", c.Kind, "config.json.tmpl"))
	if text := strings.TrimSpace(string(sample)); text != "{}" {
		m.Sample = text
	}
	return m, err
}

// goVersion returns the language version for go.mod: that of this binary.
func goVersion() string {
	parts := strings.SplitN(strings.TrimPrefix(runtime.Version(), "go"), ".", 3)
	if len(parts) < 2 {
		return "1.26"
	}
	return parts[0] + "." + parts[1]
}

// writeTemplates executes the templates of a scaffold directory into dir.
func writeTemplates(dir, from string, m module) error {
	files, err := scaffold.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		t, err := template.ParseFS(scaffold, path.Join(from, f.Name()))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, m); err != nil {
			return err
		}
		name, text := strings.TrimSuffix(f.Name(), ".tmpl"), out.Bytes()
		if name == "gitignore" {
			name = ".gitignore"
		}
		if strings.HasSuffix(name, ".go") {
			if text, err = format.Source(text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
