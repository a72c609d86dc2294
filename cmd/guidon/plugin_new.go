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

// scaffold is the module that plugin new writes, by kind.
//
//go:embed scaffold
var scaffold embed.FS

type pluginNewVerb struct {
	Kind    string `arg:"" enum:"sink,notifier,matcher" help:"sink, notifier or matcher."`
	Name    string `arg:"" help:"Name of the plugin, lower case, with yours before it: acme/warehouse."`
	Module  string `help:"Path of the Go module; default: example.com/NAME." placeholder:"PATH"`
	Dir     string `help:"Directory to make; default: the last part of the name." placeholder:"DIR"`
	SDK     string `name:"sdk" help:"Version of github.com/guidonhq/guidon to require; default: that of this binary." placeholder:"VERSION"`
	Replace string `help:"Directory of a checkout to build against instead." placeholder:"DIR"`
}

// module is what the templates are filled with.
type module struct {
	Kind, Name, Binary, Operator, Module, Go, Guidon, Replace, Sample string
}

var (
	pluginName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$`)
	release    = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
	notInName  = regexp.MustCompile(`[^a-z0-9_-]`)
)

// Run writes a module that compiles and passes the conformance kit as it is.
func (v pluginNewVerb) Run(e *env) error {
	m, err := v.module()
	if err != nil {
		return err
	}
	dir := v.Dir
	if dir == "" {
		dir = m.Binary
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err // never into a directory that is there
	}
	for _, part := range []string{"common", v.Kind} {
		if err := write(dir, path.Join("scaffold", part), m); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(e.out, "%s is a %s that works. Next:\n\n  cd %s && go mod tidy && make test\n", dir, v.Kind, dir)
	return err
}

func (v pluginNewVerb) module() (module, error) {
	if !pluginName.MatchString(v.Name) {
		return module{}, fmt.Errorf("a name is lower case letters, digits, dots and dashes, with at most one slash, not %q", v.Name)
	}
	m := module{Kind: v.Kind, Name: v.Name, Binary: path.Base(v.Name), Module: v.Module, Guidon: v.SDK, Go: goVersion()}
	m.Operator = notInName.ReplaceAllString(m.Binary, "-")
	if m.Module == "" {
		m.Module = "example.com/" + v.Name
	}
	if v.Replace != "" {
		dir, err := filepath.Abs(v.Replace)
		if err != nil {
			return m, err
		}
		if _, err := os.Stat(filepath.Join(dir, "sdk", "sdk.go")); err != nil {
			return m, fmt.Errorf("--replace: %s is no checkout of Guidon", dir)
		}
		m.Replace, m.Guidon = dir, "v0.0.0"
	}
	if m.Guidon == "" {
		if m.Guidon = version; !release.MatchString(version) {
			return m, errors.New("this binary is no release: say --sdk VERSION, or --replace DIR with a checkout")
		}
	}
	sample, err := fs.ReadFile(scaffold, path.Join("scaffold", v.Kind, "config.json.tmpl"))
	if text := strings.TrimSpace(string(sample)); text != "{}" {
		m.Sample = text
	}
	return m, err
}

// goVersion is the language version that the SDK needs.
func goVersion() string {
	parts := strings.SplitN(strings.TrimPrefix(runtime.Version(), "go"), ".", 3)
	if len(parts) < 2 {
		return "1.26"
	}
	return parts[0] + "." + parts[1]
}

// write fills the templates of a directory in.
func write(dir, from string, m module) error {
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
