package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/guidonhq/guidon/examples"
	"github.com/guidonhq/guidon/sdk/proto"
	"github.com/guidonhq/guidon/sdk/python"
)

// pythonExamples are the plugins that a new one begins with, by kind, and the texts
// that its name replaces.
var pythonExamples = map[string]struct{ file, name, operator string }{
	"sink":     {"examples/lines.py", "example/lines", ""},
	"notifier": {"examples/chat.py", "example/chat", ""},
	"matcher":  {"examples/hours.py", "example/hours", "hours/"},
}

// newPython writes a plugin in Python and, without a checkout to build against, the
// package that it needs.
func newPython(dir string, m module) error {
	parts := []string{"scaffold/python"}
	if m.Kind == "notifier" {
		parts = append(parts, "scaffold/python-notifier")
	} else if err := writeFile(dir, "config.json", []byte(sampleConfig(m))); err != nil {
		return err
	}
	for _, part := range parts {
		if err := writeTemplates(dir, part, m); err != nil {
			return err
		}
	}
	example := pythonExamples[m.Kind]
	text, err := python.Package.ReadFile(example.file)
	if err != nil {
		return err
	}
	out := strings.ReplaceAll(string(text), `"`+example.name+`"`, fmt.Sprintf("%q", m.Name))
	if example.operator != "" {
		out = strings.ReplaceAll(out, example.operator, m.Operator+"/")
	}
	if err := writeFile(dir, "src/__main__.py", []byte(out)); err != nil || m.Replace != "" {
		return err
	}
	return copyTree(filepath.Join(dir, "guidon-plugin"), python.Package, ".")
}

// newRust writes a sink in Rust with the messages of the contract.
func newRust(dir string, m module) error {
	if m.Kind != "sink" {
		return errors.New("in Rust there is a template for sinks only")
	}
	if err := copyTree(filepath.Join(dir, "proto"), proto.Files, "."); err != nil {
		return err
	}
	source, err := fs.Sub(examples.Rust, "rust")
	if err != nil {
		return err
	}
	if err := copyTree(dir, source, "."); err != nil {
		return err
	}
	for file, replace := range map[string][2]string{
		"Cargo.toml":  {`name = "lines"`, fmt.Sprintf("name = %q", m.Binary)},
		"src/sink.rs": {`"example/lines"`, fmt.Sprintf("%q", m.Name)},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if err := writeFile(dir, file, bytes.ReplaceAll(text, []byte(replace[0]), []byte(replace[1]))); err != nil {
			return err
		}
	}
	if err := writeFile(dir, "config.json", []byte(sampleConfig(m))); err != nil {
		return err
	}
	return writeTemplates(dir, "scaffold/rust", m)
}

func sampleConfig(m module) string {
	if m.Sample == "" {
		return "{}\n"
	}
	return m.Sample + "\n"
}

func writeFile(dir, name string, text []byte) error {
	target := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}

// copyTree writes the files of from below to.
func copyTree(to string, from fs.FS, root string) error {
	return fs.WalkDir(from, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path.Base(name) == "__pycache__":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return writeFile(to, name, text)
	})
}
