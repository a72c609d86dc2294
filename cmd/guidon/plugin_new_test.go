package main_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newModules are modules in Go that the tests have `guidon plugin new` write, by kind.
var newModules = map[string]string{"sink": "acme/ware.store", "notifier": "acme/gong", "matcher": "filter"}

// The modules that `guidon plugin new` writes are in the format of gofmt, and a second one
// does not overwrite the first. TestNewPluginsPassConformance builds them.
func TestNewPluginModulesAreFormatted(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range newModules {
		dir := t.TempDir()
		write := func() (string, error) {
			command := exec.Command(bin, "plugin", "new", kind, name, "--replace", root)
			command.Dir = dir
			out, err := command.CombinedOutput()
			return string(out), err
		}
		if out, err := write(); err != nil || !strings.Contains(out, "go mod tidy") {
			t.Fatalf("%s: %v\n%s", kind, err, out)
		}
		files, err := filepath.Glob(filepath.Join(dir, filepath.Base(name), "*.go"))
		if err != nil || len(files) < 2 {
			t.Errorf("%s: %v, want a program and its test: %q", kind, err, files)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if formatted, err := format.Source(text); err != nil || string(formatted) != string(text) {
				t.Errorf("gofmt changes %s, or fails: %v", file, err)
			}
		}
		if out, err := write(); err == nil {
			t.Errorf("%s: an existing directory was overwritten: %s", kind, out)
		}
	}
}

// The modules that `guidon plugin new` writes compile outside the tree and pass the
// conformance kit without changes.
func TestNewPluginsPassConformance(t *testing.T) {
	longTest(t)
	needCommand(t, "make", "make")
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range newModules {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			command := exec.Command(bin, "plugin", "new", kind, name, "--replace", root)
			command.Dir = dir
			if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "go mod tidy") {
				t.Fatalf("%v\n%s", err, out)
			}
			made := filepath.Join(dir, filepath.Base(name))
			sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(made, "go.sum"), string(sums)) // go mod tidy needs the network
			out, err := shell(made, "export GOFLAGS=\"$GOFLAGS -mod=mod\" CGO_ENABLED=0; go vet ./... && test -z \"$(gofmt -l .)\" && go test ./... && make -n build test sum")
			if err != nil || !strings.Contains(out, "ok") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// The plugins in Python and Rust that `guidon plugin new` writes need no release. The
// end-to-end tests build and judge them.
func TestNewPluginsInOtherLanguages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for args, files := range map[string]map[string]string{
		"--lang python sink acme/store": {
			"store/src/plugin.py": `name="acme/store"`, "store/tests/test_plugin.py": "\nimport plugin\n", "store/tests/__init__.py": "src", "store/requirements.txt": "./guidon-plugin", "store/config.json": "events.ndjson",
			"store/guidon-plugin/src/guidon_plugin/_pb/guidon/sink/v1/sink_pb2.py": "guidon_plugin._pb", "store/Makefile": "zipapp",
		},
		"--lang python notifier acme/gong": {"gong/src/plugin.py": `name="acme/gong"`, "gong/tests/test_plugin.py": "plugin.Chat", "gong/destination.py": "8099", "gong/config.json": "8099"},
		"--lang python matcher acme/when":  {"when/src/plugin.py": `id="when/between"`, "when/tests/test_plugin.py": `"when/between"`, "when/config.json": "{}"},
		"--lang rust sink acme/rusty": {
			"rusty/Cargo.toml": `name = "rusty"`, "rusty/src/main.rs": `"acme/rusty"`, "rusty/proto/goplugin/grpc_controller.proto": "Shutdown",
			"rusty/proto/guidon/sink/v1/sink.proto": "SinkService", "rusty/src/lib.rs": "pub mod serve", "rusty/config.json": "events.ndjson",
		},
		"--lang rust notifier acme/bell": {
			"bell/Cargo.toml": "ureq", "bell/src/main.rs": `"acme/bell"`, "bell/examples/destination.rs": "8099", "bell/config.json": "8099",
			"bell/Makefile": "--example destination",
		},
		"--lang rust matcher acme/starts.x": {
			"starts.x/Cargo.toml": `name = "starts-x"`, "starts.x/src/main.rs": `"starts-x/begins"`, "starts.x/config.json": "{}",
		},
	} {
		command := exec.Command(bin, append([]string{"plugin", "new"}, strings.Fields(args)...)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "make test") {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		for file, want := range files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: %s does not contain %q: %v", args, file, want, err)
			}
		}
	}
}

func TestPluginNewArgumentErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"a name is lower case":        {"sink", "Acme/Foo"},
		"at most one slash":           {"sink", "a/b/c"},
		"no release":                  {"sink", "acme/foo"},
		"is no checkout":              {"sink", "acme/foo", "--replace", "/"},
		"must be one of":              {"thing", "acme/foo"},
		"a name is lower case letter": {"sink", "../../etc"},
	} {
		command := exec.Command(bin, append([]string{"plugin", "new"}, args...)...)
		command.Dir = t.TempDir()
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("plugin new %q: %v\n%s", args, err, out)
		}
	}
}
