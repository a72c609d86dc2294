package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What `guidon plugin new` writes compiles outside the tree and passes the
// conformance kit as it is.
func TestNewPluginsPassTheConformanceKit(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[string]string{"sink": "acme/store.house", "notifier": "acme/gong", "matcher": "sieve"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			verb := exec.Command(bin, "plugin", "new", kind, name, "--replace", root)
			verb.Dir = dir
			if out, err := verb.CombinedOutput(); err != nil || !strings.Contains(string(out), "go mod tidy") {
				t.Fatalf("%v\n%s", err, out)
			}
			made := filepath.Join(dir, filepath.Base(name))
			sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(made, "go.sum"), string(sums)) // instead of go mod tidy, which asks the network
			out, err := shell(made, "export GOFLAGS=-mod=mod CGO_ENABLED=0; go vet ./... && test -z \"$(gofmt -l .)\" && go test ./... && make -n build test sum")
			if err != nil || !strings.Contains(out, "ok") {
				t.Fatalf("%v\n%s", err, out)
			}
			again := exec.Command(bin, "plugin", "new", kind, name, "--replace", root)
			again.Dir = dir
			if out, err := again.CombinedOutput(); err == nil {
				t.Errorf("written over what was there: %s", out)
			}
		})
	}
}

func TestNewPluginsNeedANameAndAnSDK(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"a name is lower case":        {"sink", "Acme/Foo"},
		"at most one slash":           {"sink", "a/b/c"},
		"no release":                  {"sink", "acme/foo"},
		"is no checkout":              {"sink", "acme/foo", "--replace", "/"},
		"must be one of":              {"thing", "acme/foo"},
		"a name is lower case letter": {"sink", "../../etc"},
	} {
		verb := exec.Command(bin, append([]string{"plugin", "new"}, args...)...)
		verb.Dir = t.TempDir()
		out, err := verb.CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("plugin new %q: %v\n%s", args, err, out)
		}
	}
}
