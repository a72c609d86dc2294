package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/examples"
	"github.com/guidonhq/guidon/sdk/proto"
	"github.com/guidonhq/guidon/sdk/python"
)

// pythonExamples are the plugins that a new one begins with, by kind, and the texts
// that its name replaces.
var pythonExamples = map[string]struct{ module, operator string }{
	"sink": {"lines", ""}, "notifier": {"chat", ""}, "matcher": {"hours", "hours/"},
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
	if err := newPythonModules(dir, m); err != nil || m.Replace != "" {
		return err
	}
	return copyTree(filepath.Join(dir, "guidon-plugin"), python.Package, ".")
}

// newPythonModules writes the module of the plugin and its tests.
func newPythonModules(dir string, m module) error {
	example := pythonExamples[m.Kind]
	for from, to := range map[string]string{example.module + ".py": "src/plugin.py", "test_" + example.module + ".py": "tests/test_plugin.py"} {
		text, err := python.Package.ReadFile("examples/" + from)
		if err != nil {
			return err
		}
		out := strings.ReplaceAll(string(text), `"example/`+example.module+`"`, fmt.Sprintf("%q", m.Name))
		out = strings.ReplaceAll(out, "import "+example.module+" as plugin", "import plugin")
		if example.operator != "" {
			out = strings.ReplaceAll(out, example.operator, m.Operator+"/")
		}
		if err := writeFile(dir, to, []byte(out)); err != nil {
			return err
		}
	}
	return writeTemplates(filepath.Join(dir, "tests"), "scaffold/python-tests", m)
}

// rustExamples are the programs that a new plugin in Rust begins with, by kind, and the
// texts that its name replaces.
var rustExamples = map[string]struct{ file, name, operator string }{
	"sink":     {"rust/src/bin/lines.rs", "example/lines", ""},
	"notifier": {"rust/src/bin/chat.rs", "example/chat", ""},
	"matcher":  {"rust/src/bin/begins.rs", "example/begins", "begins/with"},
}

// rustLibrary are the files that plugins of all kinds share.
var rustLibrary = []string{"build.rs", "rustfmt.toml", "src/lib.rs", "src/serve.rs", "src/instances.rs", "src/config.rs"}

// newRust writes a plugin in Rust with the messages of the contract.
func newRust(dir string, m module) error {
	if err := copyTree(filepath.Join(dir, "proto"), proto.Files, "."); err != nil {
		return err
	}
	files := rustLibrary
	if m.Kind == "notifier" {
		files = append(slices.Clone(files), "examples/destination.rs")
		m.Sample = rustWebhook
	}
	for _, file := range files {
		text, err := examples.Rust.ReadFile("rust/" + file)
		if err != nil {
			return err
		}
		if err := writeFile(dir, file, text); err != nil {
			return err
		}
	}
	if err := newRustProgram(dir, m); err != nil {
		return err
	}
	if err := writeFile(dir, "config.json", []byte(sampleConfig(m))); err != nil {
		return err
	}
	return writeTemplates(dir, "scaffold/rust", m)
}

// rustWebhook is the config that fits examples/destination.rs.
const rustWebhook = `{"url": "http://127.0.0.1:8099/"}`

// newRustProgram writes the program of the kind, and the package that builds it.
func newRustProgram(dir string, m module) error {
	example := rustExamples[m.Kind]
	program, err := examples.Rust.ReadFile(example.file)
	if err != nil {
		return err
	}
	out := strings.ReplaceAll(string(program), `"`+example.name+`"`, fmt.Sprintf("%q", m.Name))
	if example.operator != "" {
		out = strings.ReplaceAll(out, example.operator, m.Operator+"/begins")
	}
	if err := writeFile(dir, "src/main.rs", []byte(out)); err != nil {
		return err
	}
	manifest, err := examples.Rust.ReadFile("rust/Cargo.toml")
	if err != nil {
		return err
	}
	text := strings.Replace(string(manifest), `name = "lines"`, fmt.Sprintf("name = %q", notInName.ReplaceAllString(m.Binary, "-")), 1)
	if m.Kind != "notifier" {
		text = regexp.MustCompile(`(?m)^ureq = .*\n`).ReplaceAllString(text, "")
	}
	return writeFile(dir, "Cargo.toml", []byte(text))
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
